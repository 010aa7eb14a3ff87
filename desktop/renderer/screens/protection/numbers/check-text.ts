import { DateTime } from 'luxon';
import { doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import { restrictedKindNames } from '#contract/protection/numbers.ts';
import type { CheckedNumberView, CheckReason } from '#contract/protection/protection.ts';
import { pluralize } from '../../../state/format/format.ts';
import { formatDay, formatMinute } from '../../../state/format/format-time.ts';
import { describePrefixes, formatWindows, toWeeks } from '../calling-hours/week.ts';
import { nameCountry } from './countries.ts';

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
  }
}

function describeClosed({ rulesFrom, opensAt }: CheckedNumberView): string {
  const source = rulesFrom ? ` of the ${rulesFrom.kind} ${rulesFrom.name}` : '';
  return `It’s outside the calling hours${source}. ${opensAt === undefined ? 'They don’t open within 31 days.' : 'A call would be held until they open.'}`;
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

/**
 * Says when the number may be called, and in which zones: "between 09:00 and 20:00 in each of 2 possible zones". Null if no hours apply.
 */
export function describeHours({ rules, zones, zoneNames }: CheckedNumberView): string | null {
  if (rules.length === 0) return null;
  const [week] = toWeeks(rules);
  const hours = new Set(week?.days.filter(({ windows }) => windows.length > 0).map(({ windows }) => formatWindows(windows)));
  const [windows] = hours;
  const opensOnDates = rules.some(({ date, closed }) => date !== undefined && !closed);
  const text = windows === undefined ? (opensOnDates ? 'only on some dates' : 'never') : describeOpen(windows, hours.size > 1);
  const prefixes = week && !week.prefixes.includes('') ? ` (${describePrefixes(week.prefixes, false).toLowerCase()})` : '';
  return `${text} ${describeZones(zones, zoneNames)}${prefixes}`;
}

function describeOpen(windows: string, variesByDay: boolean): string {
  if (variesByDay) return 'different hours on different days';
  return windows.includes(',') ? windows : `between ${windows.replace('–', ' and ')}`;
}

/** Says when calling hours next open, in the person's zone if it's known. @param ownZone used if there are several possible zones */
export function describeOpening(opensAt: string, zoneNames: readonly string[], ownZone: string): string {
  const [zone, ...others] = zoneNames;
  const opening = DateTime.fromISO(opensAt, { zone: zone === undefined || others.length > 0 ? ownZone : zone });
  return `${formatMinute(opening)} ${opening.zoneName}`;
}

/** A guessed zone must not look like a fact. */
function describeZones(zones: number, names: readonly string[]): string {
  if (zones === 0) return 'in an unknown time zone';
  return zones === 1 ? `in ${names[0]}` : `in each of ${pluralize(zones, 'possible zone')}`;
}
