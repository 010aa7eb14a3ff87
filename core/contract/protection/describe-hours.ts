import { counted } from '../text/count.ts';
import { formatMinutes, type HoursRule, toWindows, type Weekday, type Window, weekdays } from './calling-hours.ts';

// Dates stay in the format YYYY-MM-DD, which the console shows as it shows all days.

const shownWeeks = 3;
const shownDates = 3;
const shownPrefixes = 6;

/**
 * Describes all rules of a scope, or of hundreds the most general ones: "+49: Monday to Friday 09:00–12:00; all other numbers: at any time".
 * The core applies the rules with the longest matching prefix, and none to a number that no rule matches.
 */
export function describeRules(rules: readonly HoursRule[]): string {
  const weeks = toWeeks(rules);
  const general = weeks.find(({ prefixes }) => prefixes.includes(''));
  const special = weeks.filter((week) => week !== general);
  const more = special.slice(shownWeeks).flatMap(({ prefixes }) => prefixes).length;
  const parts = [
    ...special
      .slice(0, shownWeeks)
      .toReversed()
      .map(({ prefixes, days }) => `${listPrefixes(prefixes)}: ${describeWeek(days)}`),
    ...(more > 0 ? [`${counted(more, 'more prefix', 'more prefixes')}: other hours`] : []),
    `${special.length > 0 ? 'all other' : 'All'} numbers: ${general ? describeWeek(general.days) : 'at any time'}`,
  ];
  const dates = describeDates(rules).map(({ date, text }) => `${date}: ${text.toLowerCase()}`);
  const shown = dates.length > shownDates ? [`and ${counted(dates.length - shownDates, 'more date')}`] : [];
  const onDates = dates.length === 0 ? '' : `. Instead, on ${[...dates.slice(0, shownDates), ...shown].join('; ')}`;
  return `${parts.join('; ')}${onDates}`;
}

/** The days of a week for all prefixes that have the same hours. */
export type Week = { prefixes: string[]; days: readonly { day: Weekday; windows: Window[] }[] };

/** Groups weekly rules into weeks, shortest prefixes first. */
export function toWeeks(rules: readonly HoursRule[]): Week[] {
  const byPrefix = Map.groupBy(
    rules.filter(({ days }) => days),
    ({ prefix }) => prefix,
  );
  const weeks = byPrefix.entries().map(([prefix, own]) => {
    const days = weekdays.map((day) => ({ day, windows: toWindows(own.filter((rule) => rule.days?.includes(day))) }));
    return { prefix, days };
  });
  const byHours = Map.groupBy(weeks, ({ days }) => JSON.stringify(days));
  return [...byHours.values()]
    .map((group) => ({ prefixes: group.map(({ prefix }) => prefix).sort(), days: group[0]?.days ?? [] }))
    .sort((a, b) => (a.prefixes[0] ?? '').length - (b.prefixes[0] ?? '').length);
}

/** Describes windows: "09:00–13:00, 14:00–20:00". */
export function formatWindows(windows: readonly Window[]): string {
  if (windows.length === 0) return 'Closed';
  return windows.map(({ from, to }) => `${formatMinutes(from)}–${formatMinutes(to)}`).join(', ');
}

/** Describes the numbers of a week: "Numbers that start with +1239, +1305 and 36 more prefixes". */
export function describePrefixes(prefixes: readonly string[], hasOthers: boolean): string {
  if (prefixes.includes('')) return hasOthers ? 'All other numbers' : 'All numbers';
  return `Numbers that start with ${listPrefixes(prefixes)}`;
}

function listPrefixes(prefixes: readonly string[]): string {
  const more = prefixes.length - shownPrefixes;
  return `${prefixes.slice(0, shownPrefixes).join(', ')}${more > 0 ? ` and ${counted(more, 'more prefix', 'more prefixes')}` : ''}`;
}

/** Describes the rules for dates, earliest first: "2026-12-25: Closed". */
export function describeDates(rules: readonly HoursRule[]): { date: string; text: string }[] {
  const byDate = Map.groupBy(
    rules.filter(({ date }) => date !== undefined),
    ({ date, prefix }) => `${date} ${prefix}`,
  );
  return [...byDate.entries()].sort().map(([key, dateRules]) => {
    const [date = '', prefix = ''] = key.split(' ');
    return { date, text: `${formatWindows(toWindows(dateRules))}${prefix === '' ? '' : `, for ${prefix}`}` };
  });
}

export const never = 'never';

/** Describes the hours of a week: "Monday to Friday 09:00–12:00 and 13:00–18:00, Saturday 10:00–14:00". */
export function describeWeek(days: Week['days']): string {
  const open = Map.groupBy(
    days.filter(({ windows }) => windows.length > 0),
    ({ windows }) => inWords(windows.map((window) => formatWindows([window]))),
  );
  return open.size === 0 ? never : Array.from(open, ([hours, same]) => `${describeDays(same.map(({ day }) => day))} ${hours}`).join(', ');
}

export const dayLabels: Readonly<Record<Weekday, string>> = {
  mon: 'Monday',
  tue: 'Tuesday',
  wed: 'Wednesday',
  thu: 'Thursday',
  fri: 'Friday',
  sat: 'Saturday',
  sun: 'Sunday',
};

/** Names days of a week: "Monday to Friday", "Monday and Wednesday". */
function describeDays(days: readonly Weekday[]): string {
  const names = days.map((day) => dayLabels[day]);
  const inRow = weekdays.slice(weekdays.indexOf(days[0] ?? 'mon')).slice(0, days.length);
  if (days.length === weekdays.length) return 'every day';
  return days.length > 2 && inRow.join() === days.join() ? `${names[0]} to ${names.at(-1)}` : inWords(names);
}

/** Joins texts: "a, b and c". */
function inWords(texts: readonly string[]): string {
  return texts.join(', ').replace(/, ([^,]*)$/, ' and $1');
}
