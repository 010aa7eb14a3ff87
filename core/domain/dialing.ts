import { Duration } from 'luxon';
import type { OutcomeState } from '#contract/dialer.ts';
import type { Clock } from './ports.ts';

/** A call that the dialer has claimed, for as long as the lease runs. Instants are epoch milliseconds. */
export type ClaimedCall = {
  contactId: string;
  requestId: string;
  campaignId: string;
  phone: string;
  name: string | null;
  timeZone: string | null;
  variables: Readonly<Record<string, string>>;
  placedAt: number;
  notBefore: number | null;
  notAfter: number | null;
  firstAttemptAt: number;
  /** To whom the call is, or may have been, handed off. */
  provider: string;
  /** Counts the claims of this call. What an earlier one has to say no longer counts. */
  attempt: number;
  /**
   * How far the hand-off has come: `open`, nothing can have reached the provider yet; `doubt`, an earlier attempt may have; `taken`, the
   * provider has the call.
   */
  handoff: 'open' | 'doubt' | 'taken';
  leaseUntil: number;
};

/** What became of one attempt to hand a call off. */
export type HandoffResult =
  /** The provider has the call. It reports the outcome, or is asked for it at `outcomeAt`. */
  | { kind: 'taken'; outcomeAt?: number }
  | { kind: 'rejected'; detail: string }
  /** For certain, the provider has not got it. */
  | { kind: 'not-taken'; detail: string; retryAfter?: number }
  /** Sent, and no answer came. */
  | { kind: 'answer-lost'; detail: string };

/** Whoever makes phones ring. */
export type Provider = {
  name: 'webhook' | 'simulated';
  /** Whether a hand-off that comes twice under one id makes one call. */
  deduplicates: boolean;
  handOff(call: ClaimedCall): Promise<HandoffResult>;
  /** The outcome of a call that was taken and whose `outcomeAt` has come; null where it should have been reported by now. */
  conclude(call: ClaimedCall): Conclusion | null;
};

export type Conclusion = { state: OutcomeState | 'unknown'; detail: string | null; endedAt: number; durationSeconds: number | null };

/** How an attempt changes its call. */
export type Settlement =
  | { kind: 'taken'; dialedAt: number; dueAt: number }
  | { kind: 'retry'; dueAt: number; handoff: 'retry' | 'doubt' }
  | ({ kind: 'ended' } & Conclusion);

export type DialingStore = {
  /**
   * Claims due calls, the oldest first and evenly from all accounts that have any, each for the length of the lease. Calls whose time has
   * passed undialed lapse. No two claims of one call overlap, over all processes.
   */
  claim(limit: number, provider: Provider['name'], now: number, leaseUntil: number): Promise<ClaimedCall[]>;
  /** @returns false when the claim is over: somebody else has the call, or it has ended */
  settle(call: ClaimedCall, settlement: Settlement): Promise<boolean>;
  /** @returns whether such a call was ever handed off. A final state stays as it is */
  reportOutcome(contactId: string, conclusion: Conclusion): Promise<boolean>;
  /** Lets calls lapse whose `notAfter` has passed, whether anybody dials or not. In short steps. @returns how many */
  lapse(now: number, signal?: AbortSignal): Promise<number>;
  /** Ends calls that nobody has looked at for `dialingLimits.life` after they were due. In short steps. @returns how many */
  endForgotten(now: number, signal?: AbortSignal): Promise<number>;
  /**
   * Makes calls due that wait for an instant which only a clock that was ahead can have set: placed or claimed before it stepped back, they
   * would wait for it to catch up. @returns how many
   */
  recoverFromClockStep(now: number, signal?: AbortSignal): Promise<number>;
  /** Calls that are due, and since when the oldest is (epoch ms). */
  queue(now: number): Promise<{ due: number; oldestDueAt: number | null }>;
};

export const dialingLimits = {
  /** Longer than a hand-off can take. */
  lease: Duration.fromObject({ seconds: 30 }),
  /** How long hand-offs are tried, from the first one, for a call that names no end of its own. */
  window: Duration.fromObject({ hours: 1 }),
  /** How long the outcome of a taken call may take. */
  outcome: Duration.fromObject({ hours: 4 }),
  /** For how long a call may wait, from when it was due, that names no end of its own: it must not ring out of the blue a season later. */
  life: Duration.fromObject({ days: 30 }),
  /** How far the clocks of cores on one database may be apart. */
  clockSkew: Duration.fromObject({ minutes: 5 }),
  firstRetry: Duration.fromObject({ seconds: 1 }),
  longestRetry: Duration.fromObject({ minutes: 5 }),
};

/**
 * What an attempt's result means for its call. Nobody is called twice: a hand-off whose answer was lost is repeated only where the
 * provider is known to de-duplicate.
 *
 * @param random evenly from 0 to 1
 */
export function settlementOf(call: ClaimedCall, result: HandoffResult, provider: Provider, clock: Clock, random: () => number): Settlement {
  const now = clock.now().toMillis();
  switch (result.kind) {
    case 'taken':
      return { kind: 'taken', dialedAt: now, dueAt: result.outcomeAt ?? now + dialingLimits.outcome.toMillis() };
    case 'rejected':
      return ended('failed', result.detail, now);
    case 'not-taken': {
      const dueAt = now + Math.max(retryDelay(call.attempt, random), (result.retryAfter ?? 0) * 1_000);
      if (dueAt <= endOfWindow(call)) return { kind: 'retry', dueAt, handoff: call.handoff === 'doubt' ? 'doubt' : 'retry' };
      return ended(call.handoff === 'doubt' ? 'unknown' : 'failed', result.detail, now);
    }
    case 'answer-lost': {
      const dueAt = now + retryDelay(call.attempt, random);
      if (provider.deduplicates && dueAt <= endOfWindow(call)) return { kind: 'retry', dueAt, handoff: 'doubt' };
      return ended('unknown', result.detail, now);
    }
  }
}

/** What to do with a call that comes back from a claim that was never settled, such as that of a core that was killed. */
export function mayHandOff(call: ClaimedCall, provider: Provider): boolean {
  return call.handoff === 'open' || (provider.deduplicates && call.provider === provider.name);
}

export function ended(state: OutcomeState | 'unknown', detail: string | null, endedAt: number): Settlement & Conclusion {
  return { kind: 'ended', state, detail, endedAt, durationSeconds: null };
}

function endOfWindow(call: ClaimedCall): number {
  return call.notAfter ?? call.firstAttemptAt + dialingLimits.window.toMillis();
}

/** Exponential backoff with full jitter, so that calls that failed together do not come back together. At least a tenth of a second. */
function retryDelay(attempt: number, random: () => number): number {
  const ceiling = Math.min(dialingLimits.firstRetry.toMillis() * 2 ** (attempt - 1), dialingLimits.longestRetry.toMillis());
  return 100 + Math.floor(random() * ceiling);
}
