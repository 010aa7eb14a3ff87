import { Duration } from 'luxon';
import type { ClaimedCall } from '../model.ts';
import type { HandoffResult, Provider } from '../ports.ts';
import { type EndingEvent, type Settlement, stageAfter } from './call-states.ts';

export const dialingLimits = {
  /** How long a provider may take to answer a hand-off. */
  answer: Duration.fromObject({ seconds: 10 }),
  /**
   * Longer than `answer` and the slowest statement that settles a call: otherwise another core claims the call while this one still hands it
   * off, and finds it in doubt.
   */
  lease: Duration.fromObject({ seconds: 30 }),
  firstRetry: Duration.fromObject({ seconds: 1 }),
  longestRetry: Duration.fromObject({ minutes: 5 }),
  /** How long hand-offs are repeated, from the first one, for a call without `notAfter`. Longer than `longestRetry`. */
  window: Duration.fromObject({ hours: 1 }),
  /** How long the outcome of a taken call may take. Longer than a phone call lasts. */
  outcome: Duration.fromObject({ hours: 4 }),
  /** How long after it was due a call without `notAfter` may be dialed: it must not ring months later. Longer than `window` and `outcome`. */
  life: Duration.fromObject({ days: 30 }),
};

/** Decides about a call that was just claimed: hand it off, or settle it as it is. */
export function nextStep(call: ClaimedCall, provider: Provider, now: number): 'hand-off' | Settlement {
  if (call.handoff === 'taken') return conclude(call, provider, now);
  if (call.handoff === 'doubt' && !mayRepeat(call, provider)) {
    return ended('must-not-repeat', call, 'The provider may have received this call, but its response was lost.', now);
  }
  const isPast = call.notAfter !== null && now > call.notAfter;
  if (isPast && call.handoff === 'doubt')
    return ended('too-late', call, "The call's time window ended before the provider accepted it.", now);
  // It lapses. Or this process has paused, and another core may have claimed the call since.
  if (isPast || now >= call.leaseUntil) return { event: 'not-taken', to: stageAfter('not-taken', call.handoff), dueAt: now };
  return 'hand-off';
}

/** A provider knows nothing of a call that another one has taken. */
function conclude(call: ClaimedCall, provider: Provider, now: number): Settlement {
  const conclusion = call.provider === provider.name ? provider.conclude(call) : null;
  if (!conclusion) return ended('unreported', call, 'No outcome was reported in time.', now);
  const { state, ...ending } = conclusion;
  return { event: 'outcome', to: state, ...ending };
}

/**
 * Decides about a call after its hand-off. Nobody is called twice: a hand-off whose answer was lost is repeated only if the provider
 * de-duplicates.
 *
 * @param random evenly from 0 to 1
 */
export function settlementOf(call: ClaimedCall, result: HandoffResult, provider: Provider, now: number, random: () => number): Settlement {
  switch (result.kind) {
    case 'taken': {
      const dueAt = result.outcomeAt ?? now + dialingLimits.outcome.toMillis();
      return { event: 'taken', to: stageAfter('taken', call.handoff), dialedAt: now, dueAt };
    }
    case 'rejected':
      return ended('rejected', call, result.detail, now);
    case 'not-taken': {
      const dueAt = now + Math.max(retryDelay(call.attempt, random), (result.retryAfter ?? 0) * 1_000);
      // Without a next try before notAfter, a call that the provider hasn't taken can still be cancelled until then, and lapses.
      const canLapse = call.handoff === 'open' && call.notAfter !== null;
      if (dueAt > endOfWindow(call) && !canLapse) return ended('too-late', call, result.detail, now);
      return { event: 'not-taken', to: stageAfter('not-taken', call.handoff), dueAt, detail: result.detail };
    }
    case 'answer-lost': {
      const dueAt = now + retryDelay(call.attempt, random);
      if (!mayRepeat(call, provider) || dueAt > endOfWindow(call)) return ended('must-not-repeat', call, result.detail, now);
      return { event: 'answer-lost', to: stageAfter('answer-lost', call.handoff), dueAt, detail: result.detail };
    }
  }
}

/** Another provider, or one that does not de-duplicate, would make a second call. */
function mayRepeat(call: ClaimedCall, provider: Provider): boolean {
  return provider.deduplicates && call.provider === provider.name;
}

function ended(event: EndingEvent, call: ClaimedCall, detail: string, endedAt: number): Settlement {
  return { event, to: stageAfter(event, call.handoff), detail, endedAt, durationSeconds: null };
}

function endOfWindow(call: ClaimedCall): number {
  return call.notAfter ?? call.firstAttemptAt + dialingLimits.window.toMillis();
}

/**
 * Exponential backoff with full jitter, so that calls that failed together do not return together. At least a tenth of a second, so that a
 * run of low random numbers does not flood a provider that is down.
 */
export function retryDelay(attempt: number, random: () => number): number {
  const ceiling = Math.min(dialingLimits.firstRetry.toMillis() * 2 ** (attempt - 1), dialingLimits.longestRetry.toMillis());
  return 100 + Math.floor(random() * ceiling);
}
