import { DateTime, IANAZone } from 'luxon';
import { canonicalTimeZone } from './time-zones.ts';

// Calendar days are text in the format YYYY-MM-DD, and instants are milliseconds since 1970.

/** Luxon caches every spelling forever, so only the runtime's own name is passed to it. */
function toZone(name: string): IANAZone {
  return IANAZone.create(canonicalTimeZone(name));
}

/** Returns how many minutes a time zone's clocks are ahead of UTC. */
export function offsetAt(at: number, timeZone: string): number {
  return toZone(timeZone).offset(at);
}

/** Returns the number of days from 1970-01-01 to a day. */
export function dayNumber(day: string): number {
  return Date.parse(day) / 86_400_000;
}

export function localDay(now: number, timeZone: string): string {
  return isoDay(DateTime.fromMillis(now, { zone: toZone(timeZone) }));
}

/** Adds days and years to a day. In common years, Luxon changes 29 February to 28 February. */
export function plusDays(day: string, days: number, years = 0): string {
  return isoDay(inUtc(day).plus({ years }).plus({ days }));
}

/** If clocks change at midnight, 23:59:59.999 may occur twice or not at all, so this counts back from the start of the next day. */
export function endOfDay(day: string, timeZone: string): number {
  return startOfDay(plusDays(day, 1), timeZone) - 1;
}

/** If a time zone skipped a day by crossing the date line, the skipped day starts with the next one. */
export function startOfDay(day: string, timeZone: string): number {
  // No offset exceeds ±26 h, so the local date changes to `day` between these two instants, and then doesn't change back for at least a
  // day. A binary search finds the exact millisecond.
  const midnight = inUtc(day).toMillis();
  const zone = toZone(timeZone);
  const reached = (instant: number) => isoDay(DateTime.fromMillis(instant, { zone }));
  // Nearly every day begins at midnight, with no clock change nearby. Try midnight first, because the search takes 28 steps and costs ten
  // times as much.
  const guess = midnight - zone.offset(midnight) * 60_000;
  if (reached(guess) >= day && reached(guess - 1) < day) return guess;
  let before = midnight - 27 * 3_600_000;
  let from = midnight + 27 * 3_600_000;
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2);
    if (reached(middle) >= day) from = middle;
    else before = middle;
  }
  return from;
}

/** For calendar arithmetic, because every UTC day exists and has 24 hours. */
function inUtc(day: string): DateTime {
  return DateTime.fromISO(day, { zone: 'utc' });
}

function isoDay(day: DateTime): string {
  return day.toISODate() ?? '';
}
