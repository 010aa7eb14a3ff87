import { DateTime, Duration } from 'luxon';
import { localDay, startOfDay } from '#contract/expiry.ts';
import { limits } from '#contract/limits.ts';
import type { InstantRange } from '../model.ts';
import type { Randomness } from '../ports.ts';

/** A calendar day, as YYYY-MM-DD, and its first instant. */
export type Day = { day: string; from: number };

/** A count for the quarter-hour that begins at `quarterAt`. */
export type Quarter = { quarterAt: number };

/** The days of a chart, oldest first: today in that time zone, and the days before it. */
export function chartDays(now: DateTime, timeZone: string): Day[] {
  const today = localDay(now, timeZone);
  return Array.from({ length: limits.chartDays }, (_, index) => {
    const day = today.minus({ days: limits.chartDays - 1 - index }).toISODate() ?? '';
    return { day, from: startOfDay(day, timeZone).toMillis() };
  });
}

/** Days in a time zone as YYYY-MM-DD, both included. Without one, the range is open at that end. */
export type DayRange = { from?: string | undefined; to?: string | undefined; timeZone: string };

/** The days of a chart for a range. From a long range, the newest days; without a range, those of {@link chartDays}. */
export function daysOf(now: DateTime, { from, to, timeZone }: DayRange): Day[] {
  if (from === undefined && to === undefined) return chartDays(now, timeZone);
  const today = localDay(now, timeZone);
  const first = from === undefined ? null : dayOf(from);
  const last = to === undefined ? DateTime.max(today, first ?? today) : dayOf(to);
  const length = first === null ? limits.chartDays : Math.min(limits.chosenChartDays, last.diff(first, 'days').days + 1);
  return Array.from({ length }, (_, index) => {
    const day = last.minus({ days: length - 1 - index }).toISODate() ?? '';
    return { day, from: startOfDay(day, timeZone).toMillis() };
  });
}

/** The clocks of two machines differ by less, and an ID is generated within milliseconds of the time that belongs to it. */
export const idSkew = Duration.fromObject({ minutes: 10 }).toMillis();

export function instantRange({ firstIdAt }: Pick<Randomness, 'firstIdAt'>, { from, to, timeZone }: DayRange): InstantRange {
  const start = from === undefined ? null : startOfDay(from, timeZone).toMillis();
  const end = to === undefined ? null : startOfDay(dayOf(to).plus({ days: 1 }).toISODate() ?? '', timeZone).toMillis();
  return {
    from: start,
    before: end,
    ids: { from: start === null ? null : firstIdAt(start - idSkew), before: end === null ? null : firstIdAt(end + idSkew) },
  };
}

function dayOf(day: string): DateTime {
  return DateTime.fromISO(day, { zone: 'utc' });
}

/** @returns the first instant of a chart */
export function startOf([first]: readonly Day[]): number {
  return first?.from ?? 0;
}

/** The counts of each day. Counts from a clock that's ahead belong to today. */
export function byDay<Count extends Quarter>(days: readonly Day[], counts: readonly Count[]): { day: string; counts: Count[] }[] {
  const grouped = Map.groupBy(counts, ({ quarterAt }) => days.findLast(({ from }) => from <= quarterAt)?.day);
  return days.map(({ day }) => ({ day, counts: grouped.get(day) ?? [] }));
}
