import { Duration } from 'luxon';
import { clockSkew } from '../deadlines.ts';
import { instant, type Millis, plus } from '../instant.ts';
import {
  type ClaimedCall,
  type Clock,
  type DialerTrouble,
  type DialingStore,
  type HandoffResult,
  type Ports,
  type Provider,
  type WaitingFor,
  waitingReasons,
} from '../ports.ts';
import { countAttempts, type EndingEvent, type Settlement, stageAfter } from './call-states.ts';

export const dialingLimits = {
  /** How soon after the claim a provider must have responded to a hand-off. */
  answer: Duration.fromObject({ seconds: 10 }),
  /**
   * Must be longer than `answer` plus the slowest statement that settles a call. Otherwise, another core would claim the call while this
   * one is still handing it off, and find it in doubt. Each core compares the lease with its own clock, so the clocks of dialing cores may
   * differ by at most the rest of the lease.
   */
  lease: Duration.fromObject({ seconds: 30 }),
  /**
   * How soon after its claim a hand-off must begin. Must be shorter than `answer`, for which stopping dialing waits: a core that hung in
   * between mustn't send a call later.
   */
  start: Duration.fromObject({ seconds: 5 }),
  firstRetryDelay: Duration.fromObject({ seconds: 1 }),
  maxRetryDelay: Duration.fromObject({ minutes: 5 }),
  /** How long hand-offs of a call without `notAfter` are repeated, counted from the first one. Must be longer than `maxRetryDelay`. */
  window: Duration.fromObject({ hours: 1 }),
  /** How long to wait for the outcome of a taken call. Must be longer than a phone call. */
  outcome: Duration.fromObject({ hours: 4 }),
  /**
   * How long after its due time a call without `notAfter` may be dialed, because it must not ring months later. Must be longer than
   * `window` and `outcome`.
   */
  life: Duration.fromObject({ days: 30 }),
};

/** Without `notAfter`, a call may be dialed for as long as it lives after it was first due. */
export function latestDialing(call: { placedAt: Millis; notBefore: Millis | null; notAfter: Millis | null }): Millis {
  const firstDueAt = instant(Math.max(call.placedAt, call.notBefore ?? 0));
  return call.notAfter ?? plus(firstDueAt, dialingLimits.life.toMillis());
}

export function nextStep(call: ClaimedCall, provider: Provider, now: Millis): 'hand-off' | Settlement {
  if (call.handoff === 'taken') return conclude(call, provider, now);
  // If the first attempt is in the future, a clock that was ahead has been set back, and no one knows how long ago the attempt was. The
  // provider may have forgotten the call.
  const isUndated = call.notAfter === null && call.firstAttemptAt > plus(now, clockSkew.toMillis());
  if (call.handoff === 'doubt' && (isUndated || !mayRepeat(call, provider))) {
    return ended('must-not-repeat', call, 'The provider may have received this call, but its response was lost.', now);
  }
  // A call whose number is on a do-not-call list, or that calling hours don't allow, is normally stopped before it's claimed. If the
  // provider may already have it, it's stopped here.
  if (call.handoff === 'doubt' && call.stopped !== null)
    return ended('must-not-repeat', call, `The provider may have received this call. ${call.stopped}`, now);
  // A hand-off begins within `dialingLimits.start` of its claim or not at all, because a stop doesn't wait any longer for it to begin. If
  // that time has passed, either this process was paused, and another core may have claimed the call since then, or the clock has jumped
  // ahead. Don't end the call here: the next claim checks whether the clock can be trusted.
  if (now >= plus(call.leaseUntil, -dialingLimits.lease.toMillis() + dialingLimits.start.toMillis())) return putBack(call, now);
  // Without `notAfter`, a call is tried for an hour. It must not ring long after that, even if no core was running then.
  if (now > endOfWindow(call)) {
    if (call.handoff === 'doubt' || call.notAfter === null)
      return ended('too-late', call, "The call's time window ended before the provider accepted it.", now);
    // The next claim lets it lapse.
    return putBack(call, now);
  }
  return 'hand-off';
}

/** Whether a call's hand-off may still begin. @param now in ms of the process's own clock, like `claimedAt` */
export function mayBegin({ claimedAt }: ClaimedCall, now: number): boolean {
  return now < claimedAt + dialingLimits.start.toMillis();
}

/** Makes a call that wasn't handed off due again. */
export function putBack(call: ClaimedCall, now: Millis): Settlement {
  return { event: 'not-taken', to: stageAfter('not-taken', call.handoff), at: now, dueAt: now };
}

/** Asks the provider for an overdue outcome. A provider doesn't know calls that a different provider has accepted. */
function conclude(call: ClaimedCall, provider: Provider, now: Millis): Settlement {
  const conclusion = call.provider === provider.name ? provider.conclude(call) : null;
  if (!conclusion) return ended('unreported', call, 'No outcome was reported in time.', now);
  const { state, ...ending } = conclusion;
  return { event: 'outcome', to: state, ...ending };
}

/** @param random returns a number from 0 to 1, evenly distributed */
export function toSettlement(call: ClaimedCall, result: HandoffResult, provider: Provider, now: Millis, random: () => number): Settlement {
  switch (result.kind) {
    case 'taken': {
      const dueAt = result.outcomeAt ?? plus(now, dialingLimits.outcome.toMillis());
      return { event: 'taken', to: stageAfter('taken', call.handoff), dialedAt: now, dueAt };
    }
    case 'rejected':
      return ended('rejected', call, result.detail, now);
    case 'not-taken': {
      const dueAt = plus(now, Math.max(retryDelay(countAttempts(call.attempt), random), (result.retryAfter ?? 0) * 1_000));
      // If the provider hasn't accepted the call, and the next attempt would come after `notAfter`, don't end the call yet, because it can
      // still be cancelled until then. It's due right after `notAfter`, and the next claim lets it lapse.
      const lapsesAt = call.handoff === 'open' && call.notAfter !== null ? plus(call.notAfter, 1) : null;
      if (isTooLate(call, dueAt, now) && lapsesAt === null) return ended('too-late', call, result.detail, now);
      const nextAt = lapsesAt !== null && lapsesAt < dueAt ? lapsesAt : dueAt;
      return { event: 'not-taken', to: stageAfter('not-taken', call.handoff), at: now, dueAt: nextAt, detail: result.detail };
    }
    case 'answer-lost': {
      const dueAt = plus(now, retryDelay(countAttempts(call.attempt), random));
      if (!mayRepeat(call, provider) || isTooLate(call, dueAt, now)) return ended('must-not-repeat', call, result.detail, now);
      return { event: 'answer-lost', to: stageAfter('answer-lost', call.handoff), at: now, dueAt, detail: result.detail };
    }
  }
}

/** Whether a hand-off can be repeated. A different provider, or one that doesn't deduplicate, might make a second call. */
function mayRepeat(call: ClaimedCall, provider: Provider): boolean {
  return provider.deduplicates && call.provider === provider.name;
}

function ended(event: EndingEvent, call: ClaimedCall, detail: string, endedAt: Millis): Settlement {
  return { event, to: stageAfter(event, call.handoff), detail, endedAt, durationSeconds: null };
}

/** Whether the next attempt would be too late. If the lease is over, the clock may have jumped ahead, so the next claim decides. */
function isTooLate(call: ClaimedCall, dueAt: Millis, now: Millis): boolean {
  return now < call.leaseUntil && dueAt > endOfWindow(call);
}

function endOfWindow(call: ClaimedCall): Millis {
  return call.notAfter ?? plus(call.firstAttemptAt, dialingLimits.window.toMillis());
}

/**
 * Returns the delay before the next attempt: exponential backoff with full jitter, so that calls that failed together aren't retried
 * together. The delay is at least a tenth of a second, so that a series of low random numbers doesn't flood a provider that's down.
 */
export function retryDelay(attempt: number, random: () => number): number {
  const ceiling = Math.min(dialingLimits.firstRetryDelay.toMillis() * 2 ** (attempt - 1), dialingLimits.maxRetryDelay.toMillis());
  return 100 + Math.floor(random() * ceiling);
}

/** Lets retention periods of calls begin that no dialer has ended in time. @returns the number of calls */
export async function endOverdueCalls(store: DialingStore, clock: Clock, signal?: AbortSignal): Promise<number> {
  const now = clock.now();
  await store.recoverFromClockStep(now, false, signal);
  return (await store.lapse(now, signal)) + (await store.endForgotten(now, signal));
}

export const troubleLimits = {
  /** Shorter interruptions aren't reported, because a provider may have restarted, or a phone number may be wrong. */
  after: Duration.fromObject({ minutes: 1 }),
  /** How often a core repeats the report while the trouble lasts. */
  every: Duration.fromObject({ minutes: 1 }),
  /** How long after the last hand-off the trouble is considered over. */
  forgotten: Duration.fromObject({ hours: 1 }),
  /**
   * The same after a hand-off that's retried, counted from the end of the provider's `Retry-After`. Must be longer than
   * `dialingLimits.maxRetryDelay`. A call that's still waiting for the provider would have been handed off again by then. So the refused
   * calls have ended, or wait for calling hours.
   */
  noRetry: Duration.fromObject({ minutes: 10 }),
  /** How long a report is valid. It expires because the core that wrote it may have died. */
  noted: Duration.fromObject({ minutes: 3 }),
};

export async function readQueue({ clock, stores }: Pick<Ports, 'clock' | 'stores'>) {
  const now = clock.now();
  const { waiting, oldestDueAt } = await stores.dialing.queue(now);
  const count = (why: WaitingFor) => waiting.get(why) ?? 0;
  return {
    due: count('dialer') + count('stop') + count('pace'),
    held: count('calling-hours'),
    waiting: Object.fromEntries(waitingReasons.map((why) => [why, count(why)])),
    oldestSeconds: oldestDueAt === null ? 0 : (now - oldestDueAt) / 1_000,
  };
}

/** Returns the longest-lasting trouble that a core has reported recently. */
export function findDialerTrouble({ clock, stores }: Ports): Promise<DialerTrouble | null> {
  return stores.dialing.findTrouble(plus(clock.now(), -troubleLimits.noted.toMillis()));
}
