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
