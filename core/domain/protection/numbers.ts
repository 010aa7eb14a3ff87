import type { MetadataJson } from 'libphonenumber-js/core';
// The smaller metadata doesn't have the types of numbers.
import metadata from 'libphonenumber-js/max/metadata';
import { isSupportedCountry } from 'libphonenumber-js/min';
import type { NumberKind, RestrictedKind } from '#contract/protection/numbers.ts';
import { canonicalTimeZone } from '#contract/time-zones.ts';
import zonePrefixes from './zone-prefixes.json' with { type: 'json' };

/** Positions in the library's data about a country (see its METADATA.md), and in its list of types. */
const at = { leadingDigits: 10, types: 11 } as const;
const kindsAt: Readonly<Record<number, RestrictedKind>> = { 3: 'premium-rate', 4: 'personal', 9: 'shared-cost' };

/** Country codes for satellite networks and other international networks, whose types the library doesn't distinguish from mobile or VoIP. */
const wholeCodes: Readonly<Record<string, RestrictedKind>> = {
  808: 'shared-cost',
  870: 'satellite',
  878: 'personal',
  881: 'satellite',
  882: 'satellite',
  883: 'satellite',
  979: 'premium-rate',
};

/** The types of one country's numbers. `kind` is null for numbers that are allowed by default. */
type NumberType = { kind: RestrictedKind | null; whole: RegExp; lengths: readonly number[] | undefined; start: RegExp };
type Country = { code: string; leadingDigits: RegExp | null; types: readonly NumberType[] };

/** The countries that share a country code. `suspicious` matches every number that could be of a restricted kind. */
type Plan = { countries: readonly Country[]; suspicious: RegExp };

/** A country code. `plan` is undefined until it's first needed. */
type Code = { code: string; kind: RestrictedKind | null; plan: Plan | null | undefined };

let codes: PrefixTree<Code> | undefined;

/** A number that begins like a restricted kind is of that kind even if it has too many digits or too few: networks ignore extra digits. */
export function getNumberKind(phone: string): NumberKind {
  const match = findCode(phone);
  if (match === undefined) return 'ordinary';
  if (match.kind) return match.kind;
  const plan = getPlan(match);
  const number = phone.slice(1 + match.code.length);
  if (!plan?.suspicious.test(number)) return 'ordinary';
  const types = plan.countries.flatMap((country) => country.types);
  const type = types.find((candidate) => isOfType(number, candidate)) ?? types.find(({ kind, start }) => kind && start.test(number));
  return type?.kind ?? 'ordinary';
}

/** Returns the country of a number as an ISO 3166-1 code; null if it has none, or if countries share its code and can't be told apart. */
export function getCountry(phone: string): string | null {
  const match = findCode(phone);
  const countries = (match && getPlan(match)?.countries) || [];
  if (match === undefined || countries.length <= 1) return countries[0]?.code ?? null;
  const number = phone.slice(1 + match.code.length);
  const matchesCountry = ({ leadingDigits, types }: Country) => leadingDigits?.test(number) ?? types.some((type) => isOfType(number, type));
  return countries.find(matchesCountry)?.code ?? null;
}

/** Whether this is the code of a country or territory that has phone numbers. `UK` isn't: the United Kingdom's code is `GB`. */
export function isCountry(code: string): boolean {
  return isSupportedCountry(code);
}

export const notACountry = 'Must be the ISO 3166-1 code of a country, such as DE, or GB for the United Kingdom.';

/** No country code is the beginning of another. */
function findCode(phone: string): Code | undefined {
  if (!codes) {
    codes = prefixTree();
    for (const code of [...Object.keys(metadata.country_calling_codes), ...Object.keys(wholeCodes)])
      codes.set(code, { code, kind: wholeCodes[code] ?? null, plan: undefined });
  }
  return codes.findLongest(phone);
}

function isOfType(number: string, { whole, lengths }: NumberType): boolean {
  return whole.test(number) && (lengths?.includes(number.length) ?? true);
}

function getPlan(code: Code): Plan | null {
  if (code.plan === undefined) code.plan = toPlan(metadata, code.code);
  return code.plan;
}

function toPlan({ countries, country_calling_codes }: MetadataJson, code: string): Plan | null {
  const names = country_calling_codes[code];
  if (!names) return null;
  const candidates = names.map((name) => {
    const data = countries[name] ?? [];
    const leading = data[at.leadingDigits];
    return { code: name, leadingDigits: leading ? new RegExp(`^(?:${leading})`) : null, types: toTypes(data[at.types] || []) };
  });
  const starts = candidates.flatMap(({ types }) => types.flatMap(({ kind, start }) => (kind ? start.source : [])));
  return { countries: candidates, suspicious: new RegExp(starts.length > 0 ? starts.join('|') : '(?!)') };
}

function toTypes(types: readonly ([pattern: string, lengths?: number[]] | 0)[]): NumberType[] {
  return types
    .flatMap((type, index) => {
      if (type === 0) return [];
      const [pattern, lengths] = type;
      return { kind: kindsAt[index] ?? null, whole: new RegExp(`^(?:${pattern})$`), lengths, start: toStart(pattern) };
    })
    .toSorted((a, b) => Number(b.kind !== null) - Number(a.kind !== null));
}

/** Matches all numbers that begin like those of the pattern. */
function toStart(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern.replaceAll(/\\d(\{\d+(,\d+)?\})?/g, '\\d*')})`);
}

let zonesByPrefix: PrefixTree<readonly string[]> | undefined;

/** Returns the time zones in which a number may be, if any is known. Numbers with the same zones get the same array. */
export function getZones(phone: string): readonly string[] {
  // Parse the prefixes when they're first needed, so that this doesn't slow down startup.
  zonesByPrefix ??= parsePrefixes();
  return zonesByPrefix.findLongest(phone) ?? unknown;
}

const unknown: readonly string[] = [];

function parsePrefixes(): PrefixTree<readonly string[]> {
  const tree = prefixTree<readonly string[]>();
  for (const [zones, prefixes] of Object.entries(zonePrefixes.prefixesByZones)) {
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

/** A value for the beginnings of phone numbers. `next` has a branch for each further digit. */
type Node<Value> = { value: Value | undefined; next: Node<Value>[] };

export type PrefixTree<Value> = {
  /** @param prefix digits, which may follow a plus sign; `''` is the beginning of all numbers */
  set(prefix: string, value: Value): void;
  /** Returns the value of the longest prefix of a number in E.164; undefined if it has none. */
  findLongest(phone: string): Value | undefined;
};

/** Finds the longest prefix in a single pass through the digits. Looking up each prefix in a map took ten times as long. */
export function prefixTree<Value>(): PrefixTree<Value> {
  const root: Node<Value> = { value: undefined, next: [] };
  return {
    set(prefix, value) {
      let node = root;
      for (let index = prefix.startsWith('+') ? 1 : 0; index < prefix.length; index++) {
        const digit = digitAt(prefix, index);
        const next = node.next[digit] ?? { value: undefined, next: [] };
        node.next[digit] = next;
        node = next;
      }
      node.value = value;
    },
    findLongest(phone) {
      let node: Node<Value> | undefined = root;
      let longest = root.value;
      for (let index = 1; node && index <= phone.length; index++) {
        longest = node.value ?? longest;
        node = node.next[digitAt(phone, index)];
      }
      return longest;
    },
  };
}

function digitAt(text: string, index: number): number {
  return text.charCodeAt(index) - 48;
}
