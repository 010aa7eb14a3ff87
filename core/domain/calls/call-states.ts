import type { CallState } from '#contract/calls/calls.ts';
import { type OutcomeState, outcomeStates } from '#contract/calls/dialer.ts';
import type { Millis } from '../instant.ts';

/**
 * The life of a call. A call has a state. While it's `dialing`, it also has a hand-off, which says what the provider may know about the
 * call. Together, the two are the call's stage:
 *
 *     stage    state     hand-off  due at                             who may move it
 *     queued   queued    –         placedAt, or notBefore if later,   key or revoke (cancel), dialer (claim, block), housekeeping (lapse,
 *                                  or when calling hours open         block)
 *     open     dialing   open      end of the lease                   the dialer that claimed it; any dialer after the lease
 *     retry    dialing   retry     next attempt                       as for queued: the provider definitely hasn't taken the call
 *     doubt    dialing   doubt     next attempt, or end of the lease  any dialer; during the lease only the one that claimed it
 *     taken    dialing   taken     when an outcome is overdue         the provider (outcome); any dialer, once it's due
 *     unknown  unknown   last one  never                              the provider (outcome)
 *     others   = stage   last one  never                              no one: these are final
 *
 *                    ┌─ cancel ─► cancelled ◄─────────────── cancel ───────────┐
 *                    │                                ┌───────── claim ────────┤
 *     place ─► queued┼─ lapse ──► lapsed ◄────────────│───────── lapse ────────┤
 *                    ├─ block ──► blocked ◄───────────│───────── block ────────┤
 *                    │                                ▼                        │
 *                    └─ claim ──────────────────────► open ── not-taken ────► retry
 *                                                     │ │ └── rejected, too-late ─► failed
 *                 claim after a lost lease,           │ │
 *                 answer-lost if repeatable           │ └──── taken ──► taken ── outcome ────► completed, no_answer, busy, failed
 *                                                     ▼                   ▲ └─── unreported ─► unknown
 *                   claim, not-taken, answer-lost ┌─ doubt ──── taken ────┘
 *                                                 └─► │ └────── rejected ─► failed
 *                                                     └──────── too-late, must-not-repeat ─► unknown
 *
 * Three arrows are missing. The provider may report an outcome at every stage of `dialing`, and even later: the first one replaces
 * `unknown`. An open call whose response was lost becomes unknown if it can't be repeated (`must-not-repeat`). And if no dialer is running
 * anymore, housekeeping ends a call thirty days after it was due (`forgotten`): at `queued` and `retry`, it lapses; at every other stage, it
 * becomes unknown.
 */
export const handoffStages = ['open', 'retry', 'doubt', 'taken'] as const;
export type HandoffStage = (typeof handoffStages)[number];

export type EndState = Exclude<CallState, 'queued' | 'dialing'>;
export type Stage = 'queued' | HandoffStage | EndState;

type Row = {
  event: string;
  from: readonly Stage[];
  /** The stage after the event. If it's a list, the provider chooses one of these outcomes. */
  to: Stage | readonly OutcomeState[];
  /** The times that the event records, except `dueAt`, which depends on the stage. */
  notes: readonly ('firstAttemptAt' | 'dialedAt' | 'cancelledAt' | 'endedAt')[];
};

export const initialStage = 'queued' satisfies Stage;

/**
 * The stages that `/metrics` counts as the queue of due calls. An open call is due only if its dialer lost the lease, and a taken call only
 * if its outcome is overdue. Neither means that the dialers are too slow.
 */
export const waitingStages = ['queued', 'retry', 'doubt'] as const satisfies readonly Stage[];

/** All transitions that a call can make. The domain, the dialer and the SQL take the stages from here. */
export const transitions = [
  // At `retry`, the provider definitely hasn't accepted the call, so it hasn't been dialed.
  { event: 'cancel', from: ['queued', 'retry'], to: 'cancelled', notes: ['cancelledAt', 'endedAt'] },
  // Housekeeping lapses calls each minute, and each claim those that it would otherwise dial too late: storage/queue/lapse.sql.
  { event: 'lapse', from: ['queued', 'retry'], to: 'lapsed', notes: ['endedAt'] },
  // The number is on a do-not-call list, or its kind or country is no longer allowed.
  { event: 'block', from: ['queued', 'retry'], to: 'blocked', notes: ['endedAt'] },

  { event: 'claim', from: ['queued', 'retry'], to: 'open', notes: ['firstAttemptAt'] },
  // The previous claim was never settled (for example, its core was killed), so the provider may have the call.
  { event: 'claim', from: ['open', 'doubt'], to: 'doubt', notes: [] },
  { event: 'claim', from: ['taken'], to: 'taken', notes: [] },

  { event: 'taken', from: ['open', 'doubt'], to: 'taken', notes: ['dialedAt'] },
  { event: 'not-taken', from: ['open'], to: 'retry', notes: [] },
  { event: 'not-taken', from: ['doubt'], to: 'doubt', notes: [] },
  { event: 'answer-lost', from: ['open', 'doubt'], to: 'doubt', notes: [] },
  // `unknown` isn't an outcome: it means that the core doesn't know.
  { event: 'outcome', from: ['open', 'retry', 'doubt', 'taken', 'unknown'], to: outcomeStates, notes: ['dialedAt', 'endedAt'] },

  { event: 'rejected', from: ['open', 'doubt'], to: 'failed', notes: ['endedAt'] },
  { event: 'too-late', from: ['open'], to: 'failed', notes: ['endedAt'] },
  { event: 'forgotten', from: ['queued', 'retry'], to: 'lapsed', notes: ['endedAt'] },

  // These events make a call `unknown`, because the provider may have it but hasn't reported an outcome, and with another hand-off, the
  // person could be called twice.
  { event: 'too-late', from: ['doubt'], to: 'unknown', notes: ['endedAt'] },
  { event: 'must-not-repeat', from: ['open', 'doubt'], to: 'unknown', notes: ['endedAt'] },
  { event: 'unreported', from: ['taken'], to: 'unknown', notes: ['endedAt'] },
  { event: 'forgotten', from: ['open', 'doubt', 'taken'], to: 'unknown', notes: ['endedAt'] },
] as const satisfies readonly Row[];

type Transition = (typeof transitions)[number];
export type CallEvent = Transition['event'];
/** The stages that an event can move a call to, except those that the provider chooses. */
type After<Event extends CallEvent> = Exclude<Extract<Transition, { event: Event }>['to'], readonly OutcomeState[]>;

/** Returns the stage that an event moves a call to. @throws Error if the event can't happen at that stage */
export function stageAfter<Event extends Exclude<CallEvent, 'outcome'>>(event: Event, from: Stage): After<Event>;
export function stageAfter(event: Exclude<CallEvent, 'outcome'>, from: Stage): Stage {
  const transition = transitionsFor(event).find((row) => row.from.includes(from));
  if (!transition || typeof transition.to !== 'string')
    throw new Error(`The event ${event} isn't allowed for a call in the stage ${from}.`);
  return transition.to;
}

/**
 * Each claim of a call has a larger number than the one before, so that the result of an earlier claim is ignored. A claim that may hand the
 * call off adds 1, and one that doesn't adds this, so that the remainder is the number of attempts.
 */
export const claimWithoutAttempt = 100_000;
/** Beyond this, every claim adds 1, because PostgreSQL's integers end soon after it. */
export const maxClaim = 2_000_000_000;

export function countAttempts(claim: number): number {
  return claim % claimWithoutAttempt;
}

/** Returns another number for a claim that didn't hand the call off after all. */
export function withoutAttempt(claim: number): number {
  return claim < maxClaim ? claim - 1 + claimWithoutAttempt : claim;
}

/** Each stage is in the `from` of at most one of these rows. */
export function transitionsFor(event: CallEvent): Row[] {
  return transitions.filter((row) => row.event === event);
}

export function stagesBefore(event: CallEvent): Stage[] {
  return transitionsFor(event).flatMap(({ from }) => from);
}

export function toState(stage: Stage): CallState {
  return isHandoffStage(stage) ? 'dialing' : stage;
}

export function isHandoffStage(stage: Stage): stage is HandoffStage {
  return handoffStages.some((handoff) => handoff === stage);
}

export type Settlement =
  | { event: 'taken'; to: After<'taken'>; dialedAt: Millis; dueAt: Millis }
  /** `detail` is shown with the call while it waits for the next attempt. */
  | { event: 'not-taken' | 'answer-lost'; to: After<'not-taken' | 'answer-lost'>; at: Millis; dueAt: Millis; detail?: string }
  | {
      event: 'outcome' | EndingEvent;
      to: OutcomeState | After<EndingEvent>;
      detail: string | null;
      endedAt: Millis;
      durationSeconds: number | null;
    };

/** The events by which a dialer ends a call without an outcome. */
export type EndingEvent = 'rejected' | 'too-late' | 'must-not-repeat' | 'unreported';
