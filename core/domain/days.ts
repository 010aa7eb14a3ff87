import type { DateTime } from 'luxon';
import { localDay, startOfDay } from '#contract/expiry.ts';
import { limits } from '#contract/limits.ts';

/** A calendar day, as YYYY-MM-DD, and its first instant in epoch milliseconds. */
export type Day = { day: string; from: number };

/** A count of what happened in the quarter of an hour that begins at `quarterAt`, in epoch milliseconds. */
export type Quarter = { quarterAt: number };

/** The days of a chart, the oldest first: today in that zone, and those before it. */
export function chartDays(now: DateTime, timeZone: string): Day[] {
  const today = localDay(now, timeZone);
  return Array.from({ length: limits.chartDays }, (_, index) => {
    const day = today.minus({ days: limits.chartDays - 1 - index }).toISODate() ?? '';
    return { day, from: startOfDay(day, timeZone).toMillis() };
  });
}

/** @returns the first instant of a chart, in epoch milliseconds */
export function startOf([first]: readonly Day[]): number {
  return first?.from ?? 0;
}

/** The counts of each day. Those of a clock that is ahead count today. */
export function byDay<Count extends Quarter>(days: readonly Day[], counts: readonly Count[]): { day: string; counts: Count[] }[] {
  const grouped = Map.groupBy(counts, ({ quarterAt }) => days.findLast(({ from }) => from <= quarterAt)?.day);
  return days.map(({ day }) => ({ day, counts: grouped.get(day) ?? [] }));
}
