import { dayNumber, offsetAt } from '#contract/calendar.ts';
import { type HoursRule, toWindows, type Window, weekdays } from '#contract/protection/calling-hours.ts';
import { instant, type Millis, oneDay, oneMinute } from '../instant.ts';
import { type PrefixTree, prefixTree } from './numbers.ts';

/** Openings later than this aren't considered. */
export const maxDaysAhead = 31;

/**
 * Finds when someone who may be in any of the zones can be called.
 *
 * @param input.rules from {@link selectRules}
 * @param input.zones the contact's, or else every zone of the number (`judgeHours` in judge.ts)
 * @returns 'open' if all zones are open at `from`; otherwise, the next instant at which they are. Null if there's none within 31 days, or
 * no zone
 */
export function findOpening(input: { rules: readonly HoursRule[]; zones: readonly string[]; from: Millis }): Opening {
  const { rules, zones, from } = input;
  const ofRules = cachedOpenings.get(rules) ?? new WeakMap<readonly string[], CachedOpening>();
  cachedOpenings.set(rules, ofRules);
  const cached = ofRules.get(zones);
  if (cached && from >= cached.from && from < cached.until) return cached.opening;
  const opening = searchOpening(input);
  // The result stays the same until the opening, or until the end of the minute.
  const minute = from - (from % oneMinute);
  const valid = typeof opening === 'number' ? { from, until: opening } : { from: minute, until: minute + oneMinute };
  ofRules.set(zones, { opening, ...valid });
  return opening;
}

type Opening = 'open' | Millis | null;

/** An opening that's valid for all instants from `from` until `until`. */
type CachedOpening = { opening: Opening; from: number; until: number };

/**
 * A search takes longer than everything else for a call, and most calls have the same rules, zones and minute as an earlier one. Windows,
 * offsets and clock changes all start at full minutes.
 */
const cachedOpenings = new WeakMap<readonly HoursRule[], WeakMap<readonly string[], CachedOpening>>();

function searchOpening({ rules, zones, from }: Parameters<typeof findOpening>[0]): Opening {
  if (zones.length === 0) return null;
  const schedule = getSchedule(rules);
  const limit = from + maxDaysAhead * oneDay;
  for (let at: number = from; at < limit; ) {
    let latest = at;
    for (const zone of zones) latest = findOpeningIn(schedule, zone, latest, limit);
    if (latest === at) return at === from ? 'open' : instant(at);
    at = latest;
  }
  return null;
}

/**
 * Returns the first instant that's within a window, as is the one a minute later, so that the phone doesn't ring when the window has just
 * closed; `limit` or later if there's none.
 */
function findOpeningIn(schedule: Schedule, zone: string, from: number, limit: number): number {
  let at = from;
  while (at < limit) {
    const start = findWindow(schedule, zone, at, limit);
    if (findWindow(schedule, zone, start + oneMinute, limit + oneMinute) === start + oneMinute) return start;
    at = start + oneMinute;
  }
  return at;
}

/** Returns the first instant within a window, or `limit`. */
function findWindow(schedule: Schedule, zone: string, from: number, limit: number): number {
  for (let at = from; at < limit; ) {
    // Until the offset changes, local time and UTC differ by a constant.
    const { ms, until } = getOffset(at, zone);
    const local = findLocalWindow(schedule, at + ms, until + ms);
    if (local !== null) return local - ms;
    at = until;
  }
  return limit;
}

/** As {@link findWindow}, in ms of local time. */
function findLocalWindow(schedule: Schedule, from: number, before: number): number | null {
  for (let day = Math.floor(from / oneDay); day * oneDay < before; day++) {
    const midnight = day * oneDay;
    const next = schedule(day).find(({ to }) => midnight + to * oneMinute > from);
    if (!next) continue;
    const start = Math.max(from, midnight + next.from * oneMinute);
    return start < before ? start : null;
  }
  return null;
}

/** Returns the windows of a local day, earliest first. The day is counted from 1970-01-01. */
type Schedule = (day: number) => readonly Window[];

// Preparing rules takes much longer than using them, and most calls have the same as an earlier one.
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

/** On a date with a rule, only the rules for that date apply. Without weekly rules, calls are allowed at any time on the other days. */
function getSchedule(rules: readonly HoursRule[]): Schedule {
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

/** Returns 0 for Monday to 6 for Sunday. 1970-01-01 was a Thursday. */
function toWeekday(day: number): number {
  return (((day + 3) % 7) + 7) % 7;
}

/** A time zone's offset from UTC, in ms, and the instant until which it certainly stays the same. */
type Offset = { ms: number; until: number };

/** The offset at the start of a UTC day, and the change if there is one on that day: when, and to which offset. */
type DayOffsets = { first: number; change: { at: number; ms: number } | null };

/** Looking up an offset takes much longer than everything else. */
const maxDays = 20_000;
const days = new Map<string, DayOffsets>();

function getOffset(at: number, timeZone: string): Offset {
  const day = Math.floor(at / oneDay);
  const key = `${day} ${timeZone}`;
  let offsets = days.get(key);
  if (!offsets) {
    if (days.size >= maxDays) days.clear();
    offsets = findOffsets(day * oneDay, timeZone);
    days.set(key, offsets);
  }
  const { first, change } = offsets;
  const end = (day + 1) * oneDay;
  if (change === null) return { ms: first, until: end };
  return at < change.at ? { ms: first, until: change.at } : { ms: change.ms, until: end };
}

/** No zone changes its clocks twice within a day. */
function findOffsets(from: number, timeZone: string): DayOffsets {
  const offset = (at: number) => offsetAt(at, timeZone) * oneMinute;
  const first = offset(from);
  const last = offset(from + oneDay - 1);
  if (first === last) return { first, change: null };
  let before = from;
  let after = from + oneDay - 1;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (offset(middle) === first) before = middle;
    else after = middle;
  }
  return { first, change: { at: after, ms: last } };
}
