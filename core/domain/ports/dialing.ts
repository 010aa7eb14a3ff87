import type { Conclusion, Settlement } from '../calls/call-states.ts';
import type { Millis } from '../instant.ts';
import type { ClaimedCall, DialerTrouble } from '../model.ts';
import type { OptOut } from './protection.ts';

/** The result of one hand-off. `detail` may quote the provider; `reason` doesn't. */
export type HandoffResult =
  /** The provider has the call. It reports the outcome, or the core asks for it at `outcomeAt`. */
  | { kind: 'taken'; outcomeAt?: Millis }
  /** The provider refused the call permanently. */
  | { kind: 'rejected'; detail: string; reason: string }
  /** The provider definitely doesn't have the call. `retryAfter` is in seconds. */
  | { kind: 'not-taken'; detail: string; reason: string; retryAfter?: number }
  /** The request was sent, but there was no response, so the provider may have the call. */
  | { kind: 'answer-lost'; detail: string; reason: string };

/** The service that makes phones ring. */
export type Provider = {
  name: 'webhook' | 'simulated';
  /** Whether several hand-offs with the same ID make only one call. */
  deduplicates: boolean;
  /** Responds within `dialingLimits.answer`. */
  handOff(call: ClaimedCall): Promise<HandoffResult>;
  /** Returns the outcome of a taken call when `outcomeAt` has come; null if the provider should have reported it by now. */
  conclude(call: ClaimedCall): Conclusion | null;
};

/** Moves calls through their states: see call-states.ts. */
export type DialingStore = {
  /**
   * Claims due calls until `leaseUntil`, oldest first and evenly across all accounts with due calls. Also lapses calls that weren't dialed
   * in time. A call never has two claims at the same time, in any process.
   */
  claim(limit: number, provider: Provider['name'], now: Millis, leaseUntil: Millis): Promise<ClaimedCall[]>;
  /** @returns false, without changing anything, if another process has claimed the call since this claim, or the call has ended */
  settle(call: ClaimedCall, settlement: Settlement): Promise<boolean>;
  /**
   * Ends a call that's being dialed, or that's `unknown` and not erased. Doesn't change other calls. With an opt-out, also adds the call's
   * number to the do-not-call list of its account or partner, in the same transaction. The call may have ended, but it must have been
   * handed off. Without a conclusion, only adds the number.
   *
   * @returns null if the call wasn't handed off, or `erased` if there's an opt-out and the number is no longer known
   * @throws Problem `unavailable` if the number was added but a claim that might not have seen it is still running
   */
  reportOutcome(
    contactId: string,
    conclusion: Conclusion | null,
    now: Millis,
    optOut?: OptOut,
  ): Promise<'recorded' | 'not-needed' | 'erased' | null>;
  /** Lapses calls that weren't dialed by their `notAfter`, in small batches. @returns the number of calls */
  lapse(now: Millis, signal?: AbortSignal): Promise<number>;
  /** Ends calls that no dialer has claimed for `dialingLimits.life` after they were due, in small batches. @returns the number of calls */
  endForgotten(now: Millis, signal?: AbortSignal): Promise<number>;
  /**
   * Makes calls due now if their `due_at` is so late that it was set by a clock that was ahead. Otherwise, they'd wait until the clock
   * catches up. Also deletes reports of trouble that were recorded with such a clock.
   *
   * @param hasStepped whether the clock was just set back. If so, the next claim also checks all calls held by calling hours again
   * @returns the number of calls
   */
  recoverFromClockStep(now: Millis, hasStepped: boolean, signal?: AbortSignal): Promise<number>;
  /** Records that a core's provider isn't accepting calls; null clears the record. @param core the name of the core's process */
  noteTrouble(core: string, trouble: DialerTrouble | null, now: Millis): Promise<void>;
  /** Returns the oldest trouble recorded since this time. */
  findTrouble(notedSince: Millis): Promise<DialerTrouble | null>;
  /** Counts the due calls that wait for a dialer, and returns when the oldest became due. */
  queue(now: Millis): Promise<{ due: number; oldestDueAt: Millis | null }>;
};
