import { DateTime } from 'luxon';
import type { SessionView } from '#contract/console/session.ts';
import { formatMinutes, type HoursRule, hoursRuleSchema, toMinutes } from '#contract/protection/calling-hours.ts';
import { describePrefixes, describeRules, describeWeek, never, toWeeks } from '#contract/protection/describe-hours.ts';
import type { ContactLimits, Pace, StopView } from '#contract/protection/dialing.ts';
import { doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import { restrictedKindNames } from '#contract/protection/numbers.ts';
import type { CheckedNumberView, CheckReason, ProtectionScope } from '#contract/protection/protection.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { dayMinutes, isDay } from './days.ts';
import { formatDates, formatDay, formatMinute, shorten } from './format.ts';

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

/** Says when people may be called, whatever has been entered so far: a date that's still being typed says nothing yet. */
export function summarizeHours(rules: readonly HoursRule[]): string {
  const text = describeRules(rules.filter(({ date }) => date === undefined || isDay(date)));
  return `${formatDates(text)}. Times are in the time zone of the person being called.`;
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
  return zones === 1 ? `in ${names[0]}` : `in each of ${counted(zones, 'possible zone')}`;
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

/** @param code in capitals */
export function isCountry(code: string): boolean {
  return /^[A-Z]{2}$/.test(code) && names.of(code) !== undefined;
}

export function nameCountry(code: string): string {
  return (isCountry(code) && names.of(code)) || `${code} (unknown)`;
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
    ...(perSecond === null ? [] : [`${formatCount(perSecond)} a second`]),
    ...(liveCalls === null ? [] : [`${counted(liveCalls, 'live call')} at the same time`]),
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
  return `${counted(queuedCalls, 'call')} ${are} waiting. ${they}, as soon as ${conditions} allow${paced === null ? '' : `: ${paced}`}.`;
}

export function describeContactLimits({ calls, days, minutesBetween }: ContactLimits): string {
  const apart = minutesBetween === 0 ? '' : `, at least ${counted(minutesBetween, 'minute')} apart`;
  return `At most ${counted(calls, 'call')} to one number in ${counted(days, 'day')}${apart}`;
}
