import { type HoursRule, type Weekday, weekdays } from '#contract/protection/calling-hours.ts';
import { pluralize } from '../../../state/format/format.ts';
import { formatIsoDay } from '../../../state/format/format-time.ts';

/** A part of a local day, in minutes since midnight. */
export type Window = { from: number; to: number };

/** The days of a week for all prefixes that have the same hours. */
export type Week = { prefixes: string[]; days: readonly { day: Weekday; windows: Window[] }[] };

export const dayLabels: Readonly<Record<Weekday, string>> = {
  mon: 'Monday',
  tue: 'Tuesday',
  wed: 'Wednesday',
  thu: 'Thursday',
  fri: 'Friday',
  sat: 'Saturday',
  sun: 'Sunday',
};

/** Groups weekly rules into weeks, shortest prefixes first. */
export function toWeeks(rules: readonly HoursRule[]): Week[] {
  const byPrefix = Map.groupBy(
    rules.filter(({ days }) => days),
    ({ prefix }) => prefix,
  );
  const weeks = byPrefix.entries().map(([prefix, prefixRules]) => ({ prefix, days: toDays(prefixRules) }));
  const byHours = Map.groupBy(weeks, ({ days }) => JSON.stringify(days));
  return [...byHours.values()]
    .map((group) => ({ prefixes: group.map(({ prefix }) => prefix).sort(), days: group[0]?.days ?? [] }))
    .sort((a, b) => (a.prefixes[0] ?? '').length - (b.prefixes[0] ?? '').length);
}

function toDays(rules: readonly HoursRule[]): Week['days'] {
  return weekdays.map((day) => {
    const dayRules = rules.filter(({ days }) => days?.includes(day));
    return { day, windows: dayRules.some(({ closed }) => closed) ? [] : mergeWindows(dayRules) };
  });
}

/** Merges windows that overlap or follow each other. */
function mergeWindows(rules: readonly HoursRule[]): Window[] {
  const windows = rules.map(({ from = '', to = '' }) => ({ from: toMinutes(from), to: toMinutes(to) })).sort((a, b) => a.from - b.from);
  const merged: Window[] = [];
  for (const window of windows) {
    const last = merged.at(-1);
    if (last && window.from <= last.to) last.to = Math.max(last.to, window.to);
    else merged.push(window);
  }
  return merged;
}

function toMinutes(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}

/** Describes windows: "09:00–13:00, 14:00–20:00". */
export function formatWindows(windows: readonly Window[]): string {
  if (windows.length === 0) return 'Closed';
  return windows.map(({ from, to }) => `${formatMinutes(from)}–${formatMinutes(to)}`).join(', ');
}

function formatMinutes(minutes: number): string {
  const pad = (count: number) => String(count).padStart(2, '0');
  return `${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
}

const shownPrefixes = 6;

/** Describes the numbers of a week: "Numbers that start with +1239, +1305 and 36 more". */
export function describePrefixes(prefixes: readonly string[], hasOthers: boolean): string {
  if (prefixes.includes('')) return hasOthers ? 'All other numbers' : 'All numbers';
  const shown = prefixes.slice(0, shownPrefixes).join(', ');
  const more = prefixes.length - shownPrefixes;
  return `Numbers that start with ${shown}${more > 0 ? ` and ${pluralize(more, 'more prefix', 'more prefixes')}` : ''}`;
}

/** Describes the rules for dates, earliest first: "25 Dec 2026: closed". */
export function describeDates(rules: readonly HoursRule[]): { date: string; text: string }[] {
  const byDate = Map.groupBy(
    rules.filter(({ date }) => date !== undefined),
    ({ date, prefix }) => `${date} ${prefix}`,
  );
  return [...byDate.entries()].sort().map(([key, dateRules]) => {
    const [date = '', prefix = ''] = key.split(' ');
    const windows = dateRules.some(({ closed }) => closed) ? [] : mergeWindows(dateRules);
    return { date: formatIsoDay(date), text: `${formatWindows(windows)}${prefix === '' ? '' : `, for ${prefix}`}` };
  });
}

/** Whether some numbers don't match any weekly rule, and so may be called at any time. */
export function leavesNumbersOpen(rules: readonly HoursRule[]): boolean {
  return rules.length > 0 && !rules.some(({ prefix, days }) => days && prefix === '');
}
