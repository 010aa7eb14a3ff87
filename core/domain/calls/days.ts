import { dayNumber, localDay, plusDays, startOfDay } from '#contract/calendar.ts';
import { limits } from '#contract/limits.ts';
import { instant, type Millis } from '../instant.ts';
import type { InstantRange, Randomness, RangeEnd } from '../ports.ts';

export type Day = { day: string; from: Millis };

/** Returns the days of a chart, oldest first: today in that time zone, and the days before it. */
export function chartDays(now: Millis, timeZone: string): Day[] {
  return daysUntil(localDay(now, timeZone), limits.chartDays, timeZone);
}

/** Days in a time zone as YYYY-MM-DD, both included. If one is missing, the range is open at that end. */
export type DayRange = { from?: string | undefined; to?: string | undefined; timeZone: string };

/** Returns the last days of a range that's too long for a chart, and {@link chartDays} without a range. */
export function listDays(now: Millis, { from, to, timeZone }: DayRange): Day[] {
  const today = localDay(now, timeZone);
  const last = to ?? (from !== undefined && from > today ? from : today);
  const length = from === undefined ? limits.chartDays : Math.min(limits.maxChartDays, dayNumber(last) - dayNumber(from) + 1);
  return daysUntil(last, length, timeZone);
}

function daysUntil(last: string, length: number, timeZone: string): Day[] {
  return Array.from({ length }, (_, index) => {
    const day = plusDays(last, index + 1 - length);
    return { day, from: firstInstant(day, timeZone) };
  });
}

function firstInstant(day: string, timeZone: string): Millis {
  return instant(startOfDay(day, timeZone));
}

export function instantRange(randomness: Pick<Randomness, 'idsAround'>, { from, to, timeZone }: DayRange): InstantRange {
  return {
    from: from === undefined ? null : rangeEnd(randomness, firstInstant(from, timeZone)),
    before: to === undefined ? null : rangeEnd(randomness, firstInstant(plusDays(to, 1), timeZone)),
  };
}

export function rangeEnd({ idsAround }: Pick<Randomness, 'idsAround'>, at: Millis): RangeEnd {
  return { at, ...idsAround(at) };
}

export function firstDayStart([first]: readonly Day[]): Millis {
  return first?.from ?? instant(0);
}

/** Groups counts by day. Counts from the future, which come from a clock that was ahead, are added to the last day. */
export function groupByDay<Count extends { quarterAt: Millis }>(
  days: readonly Day[],
  counts: readonly Count[],
): { day: string; counts: Count[] }[] {
  const grouped = Map.groupBy(counts, ({ quarterAt }) => days.findLast(({ from }) => from <= quarterAt)?.day);
  return days.map(({ day }) => ({ day, counts: grouped.get(day) ?? [] }));
}
