import { zonePrefixes } from './zone-prefixes.ts';

let zonesByPrefix: Map<string, readonly string[]> | undefined;

/** The longest prefix in the data has this many digits. */
let mostDigits = 0;

/**
 * Returns the time zones in which a number may be, by its longest known prefix; empty if none is known. Numbers with the same zones get the
 * same array.
 */
export function getZones(phone: string): readonly string[] {
  // Parsed when it's first needed, so that it doesn't slow down the start.
  zonesByPrefix ??= parsePrefixes();
  for (let end = mostDigits + 1; end > 1; end--) {
    const zones = zonesByPrefix.get(phone.slice(1, end));
    if (zones) return zones;
  }
  return unknown;
}

const unknown: readonly string[] = [];

function parsePrefixes(): Map<string, readonly string[]> {
  const map = new Map<string, readonly string[]>();
  for (const line of zonePrefixes.trim().split('\n')) {
    const [zones = '', prefixes = ''] = line.split('|');
    const names = zones.split(' ');
    for (const prefix of prefixes.split(' ')) {
      map.set(prefix, names);
      mostDigits = Math.max(mostDigits, prefix.length);
    }
  }
  return map;
}
