import { z } from 'zod';
import { zoneNames } from './zone-names.ts';

const supported = Intl.supportedValuesOf('timeZone');

/**
 * The runtime's names of time zones. Older and newer names, such as Asia/Kolkata for Asia/Calcutta, are added when they're first used,
 * because asking the runtime about one takes a thousand times as long. It knows fewer than 300 of them. Its own list omits UTC.
 */
const runtimeNames = byAnyCase(['UTC', ...supported]);

/**
 * The names in the time zone database, and the zones that only the runtime knows, because its database may be newer. The runtime also knows
 * names that aren't in the database: they're abbreviations that mean different zones to different people. To ICU, BST is in Dhaka.
 */
const databaseNames = byAnyCase([...parseNames(), ...supported]);

function byAnyCase(names: readonly string[]): Map<string, string> {
  return new Map(names.flatMap((name) => [name, name.toLowerCase()].map((key) => [key, name])));
}

function parseNames(): string[] {
  return zoneNames
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [area = '', names = ''] = line.split('|');
      return names.split(' ').map((name) => area + name);
    });
}

/** Returns the name as the time zone database spells it; null if it isn't in there, or the runtime doesn't know it. */
export function findTimeZone(text: string): string | null {
  const name = databaseNames.get(text) ?? (isPlain(text) ? databaseNames.get(text.toLowerCase()) : undefined);
  return name === undefined || findRuntimeName(name) === null ? null : name;
}

/**
 * Returns the runtime's name of a time zone. All spellings of a zone have the same one, so use it as the key of whatever is remembered.
 *
 * @throws RangeError if the runtime doesn't know the zone, which it does if {@link findTimeZone} found it
 */
export function canonicalTimeZone(name: string): string {
  const known = findRuntimeName(name);
  if (known === null) throw new RangeError(`Unknown time zone: ${name}`);
  return known;
}

function findRuntimeName(name: string): string | null {
  const exact = runtimeNames.get(name);
  if (exact !== undefined) return exact;
  if (!isPlain(name)) return null;
  const key = name.toLowerCase();
  const known = runtimeNames.get(key);
  if (known !== undefined) return known;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions();
    runtimeNames.set(key, timeZone);
    return timeZone;
  } catch {
    return null;
  }
}

/** Whether a text has only the characters of names. The lower case of others, such as the Kelvin sign, can be an ASCII letter. */
function isPlain(text: string): boolean {
  return /^[A-Za-z][\w+/-]{0,63}$/.test(text);
}

/** The zones that people most often mean by an abbreviation that isn't in the time zone database. */
const abbreviations: Readonly<Record<string, readonly string[]>> = {
  ACDT: ['Australia/Adelaide'],
  ACST: ['Australia/Adelaide', 'Australia/Darwin'],
  ACT: ['Australia/Sydney', 'America/Rio_Branco'],
  ADT: ['America/Halifax'],
  AEDT: ['Australia/Sydney'],
  AEST: ['Australia/Sydney', 'Australia/Brisbane'],
  AET: ['Australia/Sydney'],
  AGT: ['America/Argentina/Buenos_Aires'],
  AKDT: ['America/Anchorage'],
  AKST: ['America/Anchorage'],
  ART: ['America/Argentina/Buenos_Aires', 'Africa/Cairo'],
  AST: ['America/Halifax', 'Asia/Riyadh'],
  AWST: ['Australia/Perth'],
  BET: ['America/Sao_Paulo'],
  BRT: ['America/Sao_Paulo'],
  BST: ['Europe/London'],
  CAT: ['Africa/Maputo'],
  CDT: ['America/Chicago'],
  CEST: ['Europe/Berlin'],
  CLT: ['America/Santiago'],
  CNT: ['America/St_Johns'],
  COT: ['America/Bogota'],
  CST: ['America/Chicago', 'Asia/Shanghai'],
  CTT: ['Asia/Shanghai'],
  EAT: ['Africa/Nairobi'],
  ECT: ['America/Guayaquil', 'Europe/Paris'],
  EDT: ['America/New_York'],
  EEST: ['Europe/Athens'],
  GST: ['Asia/Dubai'],
  HKT: ['Asia/Hong_Kong'],
  IDT: ['Asia/Jerusalem'],
  IET: ['America/Indiana/Indianapolis'],
  IST: ['Asia/Kolkata', 'Europe/Dublin', 'Asia/Jerusalem'],
  JST: ['Asia/Tokyo'],
  KST: ['Asia/Seoul'],
  MDT: ['America/Denver'],
  MESZ: ['Europe/Berlin'],
  MEZ: ['Europe/Berlin'],
  MIT: ['Pacific/Apia'],
  MSK: ['Europe/Moscow'],
  NDT: ['America/St_Johns'],
  NET: ['Asia/Yerevan'],
  NST: ['America/St_Johns', 'Pacific/Auckland'],
  NZDT: ['Pacific/Auckland'],
  NZST: ['Pacific/Auckland'],
  PDT: ['America/Los_Angeles'],
  PET: ['America/Lima'],
  PHT: ['Asia/Manila'],
  PKT: ['Asia/Karachi'],
  PLT: ['Asia/Karachi'],
  PNT: ['America/Phoenix'],
  PRT: ['America/Puerto_Rico'],
  PST: ['America/Los_Angeles', 'Asia/Manila'],
  SAST: ['Africa/Johannesburg'],
  SGT: ['Asia/Singapore'],
  SST: ['Pacific/Pago_Pago', 'Pacific/Guadalcanal'],
  TRT: ['Europe/Istanbul'],
  VST: ['Asia/Ho_Chi_Minh'],
  WAT: ['Africa/Lagos'],
  WEST: ['Europe/Lisbon'],
  WIB: ['Asia/Jakarta'],
};

/** Names the zones that a text probably means: BST, `Berlin` or `America/New York`. */
export function describeTimeZone(text: string): string {
  const likely = findLikelyZones(text);
  const examples =
    likely.length === 0 ? 'Europe/Berlin' : `${new Intl.ListFormat('en', { type: 'disjunction' }).format(likely)} for ${text}`;
  return `Must be an IANA time zone, such as ${examples}.`;
}

function findLikelyZones(text: string): readonly string[] {
  const abbreviated = abbreviations[text.toUpperCase()];
  if (abbreviated) return abbreviated;
  const city = /^[A-Za-z /_-]{2,64}$/.test(text) ? text.toLowerCase().replace(/^.*\//, '').replaceAll(/[ _]+/g, '_') : '';
  const named = [...new Set(databaseNames.values())].filter((name) => name.includes('/') && name.toLowerCase().endsWith(`/${city}`));
  return named.slice(0, 3);
}

/** A name of the time zone database in any case, such as `Europe/Berlin` or `us/pacific`. Abbreviations and offsets aren't valid. */
export const timeZoneSchema = z
  .string()
  .overwrite((text) => findTimeZone(text) ?? text)
  .refine((name) => findTimeZone(name) !== null, { error: ({ input }) => describeTimeZone(String(input)) })
  .meta({ description: 'A name from the IANA time zone database, such as Europe/Berlin.' });
