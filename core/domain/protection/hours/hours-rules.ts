import { dayNumber } from '#contract/calendar.ts';
import { type HoursRule, weekdays } from '#contract/protection/calling-hours.ts';
import { type PrefixTree, prefixTree } from '../prefix-tree.ts';

/** In minutes of the local day: includes `from`, excludes `to`. */
type Window = { from: number; to: number };

/** Returns the windows of a local day, earliest first. The day is counted from 1970-01-01. */
export type Schedule = (day: number) => readonly Window[];

// These maps keep prepared rules, because preparing takes much longer than using them, and most calls have the same rules as an earlier
// call.
const selections = new WeakMap<readonly HoursRule[], PrefixTree<{ prefix: string; rules: readonly HoursRule[] | null }>>();
const schedules = new WeakMap<readonly HoursRule[], Schedule>();

/**
 * Selects the rules that apply to a number: of the rules for a date, those with the longest matching prefix, and likewise of the rules for
 * days of the week. Numbers with the same rules get the same array. If it's empty, no calling hours apply.
 */
export function selectRules(rules: readonly HoursRule[], phone: string): readonly HoursRule[] {
  let selection = selections.get(rules);
  if (!selection) {
    selection = prefixTree();
    for (const { prefix } of rules) selection.set(prefix, { prefix, rules: null });
    selections.set(rules, selection);
  }
  // All other matching prefixes are beginnings of the longest one.
  const longest = selection.findLongest(phone);
  if (longest === undefined) return none;
  longest.rules ??= [...Map.groupBy(rules, ({ date }) => date).values()].flatMap((ofDate) => selectLongestPrefix(ofDate, longest.prefix));
  return longest.rules;
}

const none: readonly HoursRule[] = [];

function selectLongestPrefix(rules: readonly HoursRule[], number: string): HoursRule[] {
  const matching = rules.filter(({ prefix }) => number.startsWith(prefix));
  const longest = Math.max(...matching.map(({ prefix }) => prefix.length));
  return matching.filter(({ prefix }) => prefix.length === longest);
}

/**
 * Returns the windows of selected rules. On a date with a rule, only the rules for that date apply; on other days, the weekly rules. Without
 * weekly rules, calls are allowed at any time on the other days.
 */
export function getSchedule(rules: readonly HoursRule[]): Schedule {
  const known = schedules.get(rules);
  if (known) return known;
  const schedule = toSchedule(rules);
  schedules.set(rules, schedule);
  return schedule;
}

const wholeDay: readonly Window[] = [{ from: 0, to: 24 * 60 }];

function toSchedule(rules: readonly HoursRule[]): Schedule {
  const weekly = rules.filter(({ days }) => days);
  const week = weekdays.map((day) => (weekly.length === 0 ? wholeDay : toWindows(weekly.filter(({ days }) => days?.includes(day)))));
  const byDate = Map.groupBy(
    rules.filter(({ date }) => date),
    ({ date = '' }) => dayNumber(date),
  );
  const dates = new Map(byDate.entries().map(([day, ofDate]) => [day, toWindows(ofDate)]));
  return (day) => dates.get(day) ?? week[toWeekday(day)] ?? [];
}

function toWindows(rules: readonly HoursRule[]): Window[] {
  if (rules.some(({ closed }) => closed)) return [];
  return rules.map(({ from = '', to = '' }) => ({ from: toMinutes(from), to: toMinutes(to) })).sort((a, b) => a.from - b.from);
}

function toMinutes(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}

/** Returns 0 for Monday to 6 for Sunday. 1970-01-01 was a Thursday. */
function toWeekday(day: number): number {
  return (((day + 3) % 7) + 7) % 7;
}
