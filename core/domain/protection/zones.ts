import { canonicalTimeZone } from '#contract/time-zones.ts';
import { type PrefixTree, prefixTree } from './prefix-tree.ts';
import { zonePrefixes } from './zone-prefixes.ts';

let zonesByPrefix: PrefixTree<readonly string[]> | undefined;

/**
 * Returns the time zones in which a number may be, by its longest known prefix; empty if none is known. Numbers with the same zones get the
 * same array.
 */
export function getZones(phone: string): readonly string[] {
  // Parse the prefixes when they're first needed, so that this doesn't slow down startup.
  zonesByPrefix ??= parsePrefixes();
  return zonesByPrefix.findLongest(phone) ?? unknown;
}

const unknown: readonly string[] = [];

function parsePrefixes(): PrefixTree<readonly string[]> {
  const tree = prefixTree<readonly string[]>();
  for (const line of zonePrefixes.trim().split('\n')) {
    const [zones = '', prefixes = ''] = line.split('|');
    const names = zones.split(' ');
    for (const prefix of prefixes.split(' ')) tree.set(prefix, names);
  }
  return tree;
}

const alone = new Map<string, readonly string[]>();

/** Returns a zone's name in the runtime as a list. All spellings of a zone get the same array. */
export function onlyZone(spelling: string): readonly string[] {
  const name = canonicalTimeZone(spelling);
  const known = alone.get(name);
  if (known) return known;
  const zones = [name];
  alone.set(name, zones);
  return zones;
}
