import { DateTime, IANAZone } from 'luxon';
import { z } from 'zod';
import { limits } from './limits.ts';

/** The expiry that a key's creator chose. The core computes the instant from it. */
export const expirationSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('none') }),
  z.strictObject({ kind: z.literal('years'), years: z.union([z.literal(1), z.literal(2), z.literal(3), z.literal(4), z.literal(5)]) }),
  z.strictObject({ kind: z.literal('custom'), date: z.iso.date({ error: 'Must be a date in the format YYYY-MM-DD.' }) }),
]);
export type Expiration = z.infer<typeof expirationSchema>;

/** An IANA time zone name that this runtime knows, such as `Europe/Berlin`. Offsets such as `+02:00` aren't valid. */
export const timeZoneSchema = z
  .string()
  .refine((name) => isTimeZone(name), { error: 'Must be an IANA time zone, such as Europe/Berlin.' })
  .meta({ description: 'An IANA time zone, such as Europe/Berlin.' });

/** This list is checked first, because asking the runtime about a time zone takes a hundred times as long. */
const knownZones = new Set(Intl.supportedValuesOf('timeZone'));

export function isTimeZone(name: string): boolean {
  return knownZones.has(name) || (/^[A-Za-z].{0,63}$/.test(name) && IANAZone.isValidZone(name));
}

/** Names ignore case, and Luxon caches every spelling of a name forever, so it gets only the runtime's own spelling. */
function zoneOf(name: string): IANAZone {
  return IANAZone.create(knownZones.has(name) ? name : new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone);
}

/** Calendar days in the format YYYY-MM-DD, both included. */
type DayRange = { earliest: string; latest: string };

/** The days on which a custom expiry may fall: from tomorrow to one day before five years from today, in that time zone. */
export function customRange(now: DateTime, timeZone: string): DayRange {
  const today = localDay(now, timeZone);
  return { earliest: isoDay(today.plus({ days: 1 })), latest: isoDay(latestDay(today)) };
}

/**
 * The instant at which a key stops working: the end of its last day. The core enforces it, and the console shows it before the key is
 * created.
 *
 * @param choice a custom date must be within {@link customRange}
 * @returns the instant in `timeZone`; null for a key that doesn't expire
 */
export function expiryInstant(choice: Expiration, now: DateTime, timeZone: string): DateTime | null {
  const day = expiryDay(choice, now, timeZone);
  return day === null ? null : endOfDay(day, timeZone);
}

/** The last day on which a key works, in the format YYYY-MM-DD in that time zone; null for a key that doesn't expire. */
function expiryDay(choice: Expiration, now: DateTime, timeZone: string): string | null {
  if (choice.kind === 'none') return null;
  if (choice.kind === 'custom') return choice.date;
  const today = localDay(now, timeZone);
  // Luxon changes 29 February to 28 February in common years.
  return isoDay(choice.years === 5 ? latestDay(today) : today.plus({ years: choice.years }));
}

/** Whether a day (YYYY-MM-DD) is in the range. */
export function isWithin(day: string, range: DayRange): boolean {
  return range.earliest <= day && day <= range.latest;
}

/**
 * The last millisecond of a local day: one before the first instant of the next day. It's counted back from that instant, because if clocks
 * change at midnight, 23:59:59.999 may occur twice or not at all.
 *
 * @param day YYYY-MM-DD
 */
export function endOfDay(day: string, timeZone: string): DateTime {
  const nextDay = isoDay(DateTime.fromISO(day, { zone: 'utc' }).plus({ days: 1 }));
  return startOfDay(nextDay, timeZone).minus({ milliseconds: 1 });
}

/**
 * The first instant whose local date is `day` or later. If a time zone skipped a day (by crossing the date line), that day begins with the
 * next one.
 */
export function startOfDay(day: string, timeZone: string): DateTime {
  // No offset exceeds ±26 h, so the local date changes to `day` between these two instants, and never changes back for a whole day. Halve
  // the distance until it's one millisecond.
  const noon = DateTime.fromISO(`${day}T00:00`, { zone: 'utc' }).toMillis();
  const zone = zoneOf(timeZone);
  const reached = (instant: number) => DateTime.fromMillis(instant, { zone }).toISODate() ?? '';
  // Nearly every day begins at a midnight without a clock change nearby, and the 28 steps of the search cost ten times as much.
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

/** Whether a key that expires has at most 30 days left. */
export function endsSoon(expiresAt: number | null, now: number): expiresAt is number {
  return expiresAt !== null && expiresAt - now <= limits.endsSoon * 86_400_000;
}

/** The calendar day in a time zone, as its midnight in UTC. */
export function localDay(now: DateTime, timeZone: string): DateTime {
  // Calendar arithmetic uses UTC, in which every day exists and has 24 hours.
  return DateTime.fromISO(now.setZone(zoneOf(timeZone)).toISODate() ?? '', { zone: 'utc' });
}

function latestDay(today: DateTime): DateTime {
  return today.plus({ years: 5 }).minus({ days: 1 });
}

function isoDay(day: DateTime): string {
  return day.toISODate() ?? '';
}
