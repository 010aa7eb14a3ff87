import { DateTime } from 'luxon';
import type { SessionView } from '#contract/console/session.ts';
import { type HoursRule, hoursRuleSchema, type Weekday, weekdays } from '#contract/protection/calling-hours.ts';
import type { ContactLimits, Pace, StopView } from '#contract/protection/dialing.ts';
import { doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import { restrictedKindNames } from '#contract/protection/numbers.ts';
import type { CheckedNumberView, CheckReason, ProtectionScope } from '#contract/protection/protection.ts';
import { dayMinutes, formatMinutes, isDay, toMinutes } from './days.ts';
import { formatDay, formatIsoDay, formatMinute, formatNumber, pluralize, shorten } from './format.ts';

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

/** Merges windows that overlap or follow each other. Omits what isn't a window, because someone may still be entering it. */
function mergeWindows(rules: readonly HoursRule[]): Window[] {
  const windows = rules
    .map(({ from = '', to = '' }) => ({ from: toMinutes(from), to: toMinutes(to) }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from);
  const merged: Window[] = [];
  for (const window of windows) {
    const last = merged.at(-1);
    if (last && window.from <= last.to) last.to = Math.max(last.to, window.to);
    else merged.push(window);
  }
  return merged;
}

/** Describes windows: "09:00–13:00, 14:00–20:00". */
export function formatWindows(windows: readonly Window[]): string {
  if (windows.length === 0) return 'Closed';
  return windows.map(({ from, to }) => `${formatMinutes(from)}–${formatMinutes(to)}`).join(', ');
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

/** Whether a text can be the beginning of a number, or is empty for all numbers. */
export function isPrefix(text: string): boolean {
  return hoursRuleSchema.shape.prefix.safeParse(text).success;
}

/** Identifies a rule by what it says. */
export function toRuleKey({ prefix, days, date, from, to, closed }: HoursRule): string {
  return JSON.stringify([prefix, days, date, from, to, closed]);
}

/** Removes the rules that repeat an earlier one. */
export function distinctRules(rules: readonly HoursRule[]): HoursRule[] {
  const keys = rules.map(toRuleKey);
  return rules.filter((rule, index) => keys.indexOf(toRuleKey(rule)) === index);
}

/**
 * Says in one sentence when people may be called: "+49: Monday to Friday 09:00–12:00 and 13:00–18:00; all other numbers: at any time.". The
 * core applies the rules with the longest matching prefix, and none to a number that no rule matches.
 */
export function summarizeHours(rules: readonly HoursRule[]): string {
  return `${describeRules(rules)}. Times are in the time zone of the person being called.`;
}

/** Describes rules as the audit log lists them: "+49 mon, tue 09:00 to 12:00; and 2 other rules". Returns what it can't read unchanged. */
export function describeLoggedHours(detail: string): string {
  const [, listed = '', more = ''] = /^(.*?)(; and \S+ other rules?)?$/.exec(detail) ?? [];
  const rules = listed.split('; ').map(readLoggedRule);
  const isRead = rules.every((rule) => rule !== null);
  return isRead ? `${describeRules(rules, more === '')}${more}` : detail;
}

function readLoggedRule(text: string): HoursRule | null {
  const [, numbers = '', when = '', from, to] = /^(all numbers|\+\d+) (\S.*) (?:closed|(\S+) to (\S+))$/.exec(text) ?? [];
  const prefix = numbers === 'all numbers' ? '' : numbers;
  const day = isDay(when) ? { date: when } : { days: when.split(', ') };
  const read = hoursRuleSchema.safeParse({ prefix, ...day, ...(from === undefined ? { closed: true } : { from, to }) });
  return read.success ? read.data : null;
}

/** @param isWhole whether these are all rules, so that other numbers have none */
function describeRules(rules: readonly HoursRule[], isWhole = true): string {
  const weeks = toWeeks(rules).toReversed();
  const ofWeeks = weeks.map(
    ({ prefixes, days }) =>
      `${describePrefixes(prefixes, weeks.length > 1).replace(/^Numbers that start with /, '')}: ${describeWeek(days)}`,
  );
  const isOpen = isWhole && !weeks.some(({ prefixes }) => prefixes.includes(''));
  const others = isOpen ? [`${weeks.length === 0 ? 'All' : 'All other'} numbers: at any time`] : [];
  const parts = [...ofWeeks, ...others].map((part, index) => (index === 0 ? part : part.charAt(0).toLowerCase() + part.slice(1)));
  // A date that's still being entered says nothing yet.
  const dates = describeDates(rules.filter(({ date }) => date === undefined || isDay(date)));
  const more = dates.length > shownDates ? `; and ${pluralize(dates.length - shownDates, 'more date')}` : '';
  const onDates =
    dates.length === 0
      ? ''
      : `Instead, on ${dates
          .slice(0, shownDates)
          .map(({ date, text }) => `${date}: ${text.toLowerCase()}`)
          .join('; ')}${more}`;
  return [parts.join('; '), onDates].filter((text) => text !== '').join('. ');
}

const shownDates = 3;

const never = 'never';

/** Describes the hours of a week: "Monday to Friday 09:00–12:00 and 13:00–18:00, Saturday 10:00–14:00". */
function describeWeek(days: Week['days']): string {
  const open = Map.groupBy(
    days.filter(({ windows }) => windows.length > 0),
    ({ windows }) => inWords(windows.map((window) => formatWindows([window]))),
  );
  return open.size === 0 ? never : Array.from(open, ([hours, same]) => `${describeDays(same.map(({ day }) => day))} ${hours}`).join(', ');
}

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

/** Suggests the next hours for the same numbers and days: as long as the last ones, an hour later. If the day is too short, repeats them. */
export function nextWindow(rule: HoursRule): HoursRule {
  const [from, to] = [toMinutes(rule.from ?? ''), toMinutes(rule.to ?? '')];
  const next = { from: to + 60, to: to + 60 + to - from };
  return next.to <= dayMinutes ? { ...rule, from: formatMinutes(next.from), to: formatMinutes(next.to) } : rule;
}

/** Explains why a number wouldn't be called now. Days are in the viewer's time zone. */
export function describeReasons(checked: CheckedNumberView, ownZone: string): string[] {
  return checked.reasons.flatMap((reason) =>
    reason === 'do-not-call' ? checked.entries.map((entry) => describeEntry(entry, ownZone)) : describeReason(reason, checked),
  );
}

function describeReason(reason: Exclude<CheckReason, 'do-not-call'>, checked: CheckedNumberView): string {
  switch (reason) {
    case 'number-kind':
      return `${checked.kind === 'ordinary' ? 'These numbers' : restrictedKindNames[checked.kind]} can’t be called.`;
    case 'country':
      return describeCountry(checked.country);
    case 'unknown-time-zone':
      return describeUnknownZone(checked);
    case 'outside-calling-hours':
      return describeClosed(checked);
    case 'contact-limit':
      return `The contact limits${describeSource(checked.limitsFrom)} don’t allow another call yet. A call would be held until they do.`;
  }
}

function describeClosed({ rulesFrom, opensAt }: CheckedNumberView): string {
  return `It’s outside the calling hours${describeSource(rulesFrom)}. ${opensAt === undefined ? 'They don’t open within 31 days.' : 'A call would be held until they open.'}`;
}

function describeSource(from: CheckedNumberView['rulesFrom'] | undefined): string {
  return from ? ` of the ${from.kind} ${from.name}` : '';
}

function describeEntry({ scope, reason, createdAt }: CheckedNumberView['entries'][number], ownZone: string): string {
  const day = formatDay(DateTime.fromISO(createdAt, { zone: ownZone }));
  return `On the do-not-call list of the ${scope.kind} ${scope.name} since ${day}: ${doNotCallReasonLabels[reason].toLowerCase()}.`;
}

function describeCountry(country: string | null): string {
  return country === null
    ? 'Only some countries can be called, and this number’s country is unknown.'
    : `Numbers in ${nameCountry(country)} can’t be called.`;
}

function describeUnknownZone({ zones }: CheckedNumberView): string {
  const why = zones === 0 ? 'the number’s time zone is unknown' : `the number’s ${zones} possible time zones have no hours in common`;
  return `Calling hours apply, but ${why}. The integrator has to send contact.timeZone.`;
}

/** Says when a number may be called: "Monday 09:00–20:00 in each of 2 possible zones". Null if no hours apply. */
export function describeHours({ rules, zones, zoneNames }: CheckedNumberView): string | null {
  if (rules.length === 0) return null;
  const [week] = toWeeks(rules);
  const hours = describeWeek(week?.days ?? []);
  const opensOnDates = rules.some(({ date, closed }) => date !== undefined && !closed);
  const text = hours === never && opensOnDates ? 'only on some dates' : hours;
  const prefixes = week && !week.prefixes.includes('') ? ` (${describePrefixes(week.prefixes, false).toLowerCase()})` : '';
  return `${text} ${describeZones(zones, zoneNames)}${prefixes}`;
}

/** Formats a time in the person's zone if it's known. @param ownZone used if there are several possible zones */
export function formatForPerson(iso: string, zoneNames: readonly string[], ownZone: string): string {
  const [zone, ...others] = zoneNames;
  const time = DateTime.fromISO(iso, { zone: zone === undefined || others.length > 0 ? ownZone : zone });
  return `${formatMinute(time)} ${time.zoneName}`;
}

/** A guessed zone must not look like a fact. */
function describeZones(zones: number, names: readonly string[]): string {
  if (zones === 0) return 'in an unknown time zone';
  return zones === 1 ? `in ${names[0]}` : `in each of ${pluralize(zones, 'possible zone')}`;
}

const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });

/** Reads country codes: "de, AT ch". */
export function readCountries(text: string): string[] {
  return [
    ...new Set(
      text
        .toUpperCase()
        .split(/[\s,;]+/)
        .filter((code) => code !== ''),
    ),
  ];
}

/** Names countries: "Germany, Austria". */
export function describeCountries(codes: readonly string[]): string {
  return codes.map((code) => nameCountry(shorten(code))).join(', ');
}

export function nameCountry(code: string): string {
  return (/^[A-Z]{2}$/.test(code) && names.of(code)) || `${code} (unknown)`;
}

/** A partner, account or campaign that can have rules. */
export type Tenancy = { kind: ProtectionScope; id: string; name: string };

/** Returns the partner or account that the viewer works in; null for staff who haven't selected one. */
export function ownTenancy({ viewer: { account, partner }, tenancy }: SessionView): Tenancy | null {
  if (account) return { kind: 'account', ...account };
  if (partner) return { kind: 'partner', ...partner };
  return tenancy;
}

export type Place = Pick<StopView, 'scope' | 'target'>;

/** Says where dialing is stopped: "the campaign Reminders". */
export function describePlace({ scope, target }: Place): string {
  return target ? `the ${scope} ${target.name}` : 'the whole server';
}

/**
 * Whether a stop keeps the calls of a campaign from leaving. The viewer sees no stops of other partners.
 *
 * @param accountId undefined if it isn't known
 */
export function isStopped(stops: readonly Place[], campaignId: string, accountId: string | undefined): boolean {
  return stops.some(({ scope, target }) => {
    if (scope === 'campaign') return target?.id === campaignId;
    return scope !== 'account' || target?.id === accountId;
  });
}

/** @returns null if nothing is limited */
export function describePace({ perSecond, liveCalls }: Pace): string | null {
  const parts = [
    ...(perSecond === null ? [] : [`${formatNumber(perSecond)} a second`]),
    ...(liveCalls === null ? [] : [`${pluralize(liveCalls, 'live call')} at the same time`]),
  ];
  return parts.length === 0 ? null : `at most ${parts.join(' and ')}`;
}

/** What waits for a stop to end; null if it has already ended. @property hasOthers whether the viewer sees other stops as well */
export type Waiting = { queuedCalls: number; pace: Pace | null; hasOthers: boolean } | null;

/** Says what will happen to waiting calls when dialing resumes. Some may not be due, and rules of any scope may hold others. */
export function describeWaiting(waiting: Waiting): string {
  if (!waiting) return 'Someone else has already resumed it.';
  const { queuedCalls, pace, hasOthers } = waiting;
  if (queuedCalls === 0) return 'No calls are waiting.';
  const [are, they] = queuedCalls === 1 ? ['is', 'It leaves once it’s due'] : ['are', 'They leave once they’re due'];
  const paced = pace === null ? null : describePace(pace);
  const conditions = `${hasOthers ? 'other stops, ' : ''}paces, calling hours and limits`;
  return `${pluralize(queuedCalls, 'call')} ${are} waiting. ${they}, as soon as ${conditions} allow${paced === null ? '' : `: ${paced}`}.`;
}

export function describeContactLimits({ calls, days, minutesBetween }: ContactLimits): string {
  const apart = minutesBetween === 0 ? '' : `, at least ${pluralize(minutesBetween, 'minute')} apart`;
  return `At most ${pluralize(calls, 'call')} to one number in ${pluralize(days, 'day')}${apart}`;
}
