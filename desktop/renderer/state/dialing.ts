import type { ContactLimits, Pace, StopView } from '#contract/protection/dialing.ts';
import { formatNumber, pluralize } from './format.ts';

export type Place = Pick<StopView, 'scope' | 'target'>;

/** Says where dialing is stopped: "the campaign Reminders". */
export function describePlace({ scope, target }: Place): string {
  return target ? `the ${scope} ${target.name}` : 'the whole server';
}

/** @returns null if there is no limit */
export function describePace({ perSecond, liveCalls }: Pace): string | null {
  const parts = [
    ...(perSecond === null ? [] : [`${formatNumber(perSecond)} a second`]),
    ...(liveCalls === null ? [] : [`${pluralize(liveCalls, 'live call')} at the same time`]),
  ];
  return parts.length === 0 ? null : `at most ${parts.join(' and ')}`;
}

export function describeContactLimits({ calls, days, minutesBetween }: ContactLimits): string {
  const apart = minutesBetween === 0 ? '' : `, at least ${pluralize(minutesBetween, 'minute')} apart`;
  return `At most ${pluralize(calls, 'call')} to one number in ${pluralize(days, 'day')}${apart}`;
}
