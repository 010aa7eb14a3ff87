import { doNotCallReasonLabels } from '#contract/protection/do-not-call.ts';
import { restrictedKindLabels } from '#contract/protection/numbers.ts';
import type { CheckedNumberView } from '#contract/protection/protection.ts';
import { pluralize } from '../../../state/format/format.ts';
import { formatIsoDay } from '../../../state/format/format-time.ts';
import { describePrefixes, formatWindows, toWeeks } from '../calling-hours/week.ts';
import { nameCountry } from './countries.ts';

/** Says in sentences why a number wouldn't be called now. */
export function describeReasons(checked: CheckedNumberView): string[] {
  return checked.reasons.flatMap((reason) => {
    if (reason === 'do-not-call') return checked.entries.map(describeEntry);
    if (reason === 'number-kind')
      return [
        `${checked.kind === 'ordinary' ? 'These' : restrictedKindLabels[checked.kind]} numbers may not be called.`.replace(
          'numbers numbers',
          'numbers',
        ),
      ];
    if (reason === 'country') return [describeCountry(checked.country)];
    if (reason === 'unknown-time-zone') return [describeUnknownZone(checked)];
    return [
      `It’s outside the calling hours${checked.rulesFrom ? ` of the ${checked.rulesFrom.kind} ${checked.rulesFrom.name}` : ''}. The call would be held.`,
    ];
  });
}

function describeEntry({ scope, reason, createdAt }: CheckedNumberView['entries'][number]): string {
  return `On the do-not-call list of the ${scope.kind} ${scope.name} since ${formatIsoDay(createdAt.slice(0, 10))}: ${doNotCallReasonLabels[reason].toLowerCase()}.`;
}

function describeCountry(country: string | null): string {
  return country === null
    ? 'Only some countries may be called, and this number doesn’t tell its country.'
    : `Numbers in ${nameCountry(country)} may not be called.`;
}

function describeUnknownZone({ zones }: CheckedNumberView): string {
  const why = zones === 0 ? 'the number doesn’t tell the time zone' : `its ${zones} possible time zones have no hours in common`;
  return `Calling hours apply, and ${why}. The integrator has to send contact.timeZone.`;
}

/** Says when the number may be called, and where: "between 09:00–20:00 in each of 2 possible zones". Null if no hours apply. */
export function describeHours({ rules, zones, zoneNames }: CheckedNumberView): string | null {
  if (rules.length === 0) return null;
  const [week] = toWeeks(rules);
  const hours = new Set(week?.days.filter(({ windows }) => windows.length > 0).map(({ windows }) => formatWindows(windows)));
  const text = hours.size === 1 ? [...hours].join() : 'different hours by day';
  const whose = week && !week.prefixes.includes('') ? ` (${describePrefixes(week.prefixes, false).toLowerCase()})` : '';
  return `${text} ${describeZones(zones, zoneNames)}${whose}`;
}

/** A guessed zone must not look like a fact. */
function describeZones(zones: number, names: readonly string[]): string {
  if (zones === 0) return 'in an unknown time zone';
  return zones === 1 ? `in ${names[0]}` : `in each of ${pluralize(zones, 'possible zone')}`;
}
