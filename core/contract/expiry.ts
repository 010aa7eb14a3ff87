import { DateTime, IANAZone } from 'luxon';
import { z } from 'zod';
import { limits } from './limits.ts';

/** What the creator of a key chose; the core computes the instant from it. */
export const expirationSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('none') }),
  z.strictObject({ kind: z.literal('years'), years: z.union([z.literal(1), z.literal(2), z.literal(3), z.literal(4), z.literal(5)]) }),
  z.strictObject({ kind: z.literal('custom'), date: z.iso.date({ error: 'Must be a date in the format YYYY-MM-DD.' }) }),
]);
export type Expiration = z.infer<typeof expirationSchema>;

/** An IANA time zone name that this runtime knows, such as `Europe/Berlin`. Offsets such as `+02:00` are none. */
export const timeZoneSchema = z
  .string()
  .refine((name) => isTimeZone(name), { error: 'Must be an IANA time zone, such as Europe/Berlin.' })
  .meta({ description: 'An IANA time zone, such as Europe/Berlin.' });

/** Looked up first: asking the runtime for a zone costs a hundred times as much. */
const knownZones = new Set(Intl.supportedValuesOf('timeZone'));

export function isTimeZone(name: string): boolean {
  return knownZones.has(name) || (/^[A-Za-z].{0,63}$/.test(name) && IANAZone.isValidZone(name));
}

/** Luxon remembers each spelling of a zone's name for good, and case does not count: it is only ever given the one of the runtime. */
function zoneOf(name: string): IANAZone {
  return IANAZone.create(knownZones.has(name) ? name : new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone);
}

/** Calendar days as YYYY-MM-DD, both included. */
type DayRange = { earliest: string; latest: string };

/** The days that a custom expiry may fall on: from tomorrow to one day short of five years from today, in that zone. */
export function customRange(now: DateTime, timeZone: string): DayRange {
  const today = localDay(now, timeZone);
  return { earliest: isoDay(today.plus({ days: 1 })), latest: isoDay(latestDay(today)) };
}

/**
 * The instant at which a key stops working: the end of its last day. The core decides with it, and the console shows it before it creates.
 *
 * @param choice a custom date must lie within {@link customRange}
 * @returns in the zone `timeZone`; null for a key that does not expire
 */
export function expiryInstant(choice: Expiration, now: DateTime, timeZone: string): DateTime | null {
  const day = expiryDay(choice, now, timeZone);
  return day === null ? null : endOfDay(day, timeZone);
}

/** The last day on which a key works, as YYYY-MM-DD in that zone; null for a key that does not expire. */
function expiryDay(choice: Expiration, now: DateTime, timeZone: string): string | null {
  if (choice.kind === 'none') return null;
  if (choice.kind === 'custom') return choice.date;
  const today = localDay(now, timeZone);
  // Luxon clamps 29 February to 28 February in common years.
  return isoDay(choice.years === 5 ? latestDay(today) : today.plus({ years: choice.years }));
}

/** Whether a day (YYYY-MM-DD) lies in the range. */
export function isWithin(day: string, range: DayRange): boolean {
  return range.earliest <= day && day <= range.latest;
}

/**
 * The last millisecond of a local day: one before the first instant of the day after. Counted back from that instant,
 * since 23:59:59.999 may happen twice, or not at all, where clocks change at midnight.
 *
 * @param day YYYY-MM-DD
 */
export function endOfDay(day: string, timeZone: string): DateTime {
  const nextDay = isoDay(DateTime.fromISO(day, { zone: 'utc' }).plus({ days: 1 }));
  return startOfDay(nextDay, timeZone).minus({ milliseconds: 1 });
}

/**
 * The first instant whose local calendar day is `day` or later. Days that a zone left out (a jump over the date line)
 * begin where the next one does.
 */
export function startOfDay(day: string, timeZone: string): DateTime {
  // No offset is beyond ±26 h, so the local date changes to `day` somewhere between these two instants, and it never changes back
  // over a whole day: halve the distance until it is one millisecond.
  const noon = DateTime.fromISO(`${day}T00:00`, { zone: 'utc' }).toMillis();
  const zone = zoneOf(timeZone);
  const reached = (instant: number) => DateTime.fromMillis(instant, { zone }).toISODate() ?? '';
  // Nearly every day begins at a midnight with no change of clocks about it, and 28 steps of the search cost ten times as much.
  const guess = noon - zone.offset(noon) * 60_000;
  if (reached(guess) >= day && reached(guess - 1) < day) return DateTime.fromMillis(guess, { zone });
  let before = noon - 27 * 3_600_000;
  let from = noon + 27 * 3_600_000;
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2);
    if (reached(middle) >= day) from = middle;
    else before = middle;
  }
  return DateTime.fromMillis(from, { zone });
}

/** A key is accepted up to and including its expiry instant. Both are epoch milliseconds. */
export function isExpired(expiresAt: number | null, now: number): boolean {
  return expiresAt !== null && now > expiresAt;
}

/** Whether a key that ends has at most 30 days left. Both in epoch milliseconds. */
export function endsSoon(expiresAt: number | null, now: number): expiresAt is number {
  return expiresAt !== null && expiresAt - now <= limits.endsSoon * 86_400_000;
}

/** The calendar day in a zone, as its midnight in UTC. */
export function localDay(now: DateTime, timeZone: string): DateTime {
  // Calendar arithmetic is done in UTC, where every day exists and has 24 hours.
  return DateTime.fromISO(now.setZone(zoneOf(timeZone)).toISODate() ?? '', { zone: 'utc' });
}

function latestDay(today: DateTime): DateTime {
  return today.plus({ years: 5 }).minus({ days: 1 });
}

function isoDay(day: DateTime): string {
  return day.toISODate() ?? '';
}
