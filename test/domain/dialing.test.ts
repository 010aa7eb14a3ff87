import { expect } from 'chai';
import { dialingLimits, nextStep, retryDelay, toSettlement, troubleLimits } from '../../core/domain/calls/dialing.ts';
import { clockSkew, deadlines } from '../../core/domain/deadlines.ts';
import { instant } from '../../core/domain/instant.ts';
import type { ClaimedCall, HandoffResult, Provider } from '../../core/domain/ports.ts';
import { claimedCall } from '../support/claimed-call.ts';

const now = instant(1_795_000_000_000);
const hour = 3_600_000;
const skew = clockSkew.toMillis();
const claimed = (changes: Partial<ClaimedCall> = {}) =>
  claimedCall({ placedAt: instant(now - 2 * hour), firstAttemptAt: now, leaseUntil: instant(now + 30_000), ...changes });
const doubtful = (changes: Partial<ClaimedCall> = {}) => claimed({ handoff: 'doubt', ...changes });
/** Since the claim, either the clock has jumped ahead, or the process was paused. */
const claimedLongAgo = { firstAttemptAt: instant(now - 9 * 24 * hour), leaseUntil: instant(now - 9 * 24 * hour + 30_000) };
const provider = (changes: Partial<Provider> = {}): Provider => ({
  name: 'webhook',
  deduplicates: false,
  handOff: () => Promise.reject(new Error('No rule in these tests hands off a call.')),
  conclude: () => null,
  ...changes,
});
const deduplicating = provider({ deduplicates: true });
const unknown = (event: string, detail: string) => ({ event, to: 'unknown', detail, endedAt: now, durationSeconds: null });
const failed = (event: string, detail: string) => ({ ...unknown(event, detail), to: 'failed' });

describe('settling a claimed call', () => {
  const mustNotRepeat = unknown('must-not-repeat', 'The provider may have received this call, but its response was lost.');
  const unreported = unknown('unreported', 'No outcome was reported in time.');
  const tooLate = "The call's time window ended before the provider accepted it.";
  const released = { event: 'not-taken', to: 'retry', at: now, dueAt: now };
  const conclusion = { state: 'busy', detail: null, endedAt: instant(now - 1), durationSeconds: null } as const;
  const concluding = provider({ name: 'simulated', conclude: () => conclusion });
  const table: [string, ClaimedCall, Provider, 'hand-off' | object][] = [
    ['hands off an open call', claimed(), provider(), 'hand-off'],
    ['still hands off a call at exactly notAfter', claimed({ notAfter: now }), provider(), 'hand-off'],
    ['hands off a call in doubt to a provider that deduplicates', doubtful(), deduplicating, 'hand-off'],
    [
      'hands off a call in doubt again if its first hand-off is as far in the future as clocks may differ',
      doubtful({ firstAttemptAt: instant(now + skew) }),
      deduplicating,
      'hand-off',
    ],
    [
      'hands off a call in doubt until notAfter, even if its first hand-off is in the future',
      doubtful({ firstAttemptAt: instant(now + skew + 1), notAfter: now }),
      deduplicating,
      'hand-off',
    ],
    [
      'hands off an open call, even if its first hand-off is in the future',
      claimed({ firstAttemptAt: instant(now + skew + 1) }),
      provider(),
      'hand-off',
    ],
    ["ends a call in doubt if the provider doesn't deduplicate", doubtful(), provider(), mustNotRepeat],
    ['ends a call in doubt if another provider may have it', doubtful({ provider: 'simulated' }), deduplicating, mustNotRepeat],
    [
      'ends a call in doubt if its first hand-off is in the future, because the clock was set back',
      doubtful({ firstAttemptAt: instant(now + skew + 1) }),
      deduplicating,
      mustNotRepeat,
    ],
    ['releases an open call after notAfter, so that it lapses', claimed({ notAfter: instant(now - 1) }), provider(), released],
    ['ends a call in doubt after notAfter', doubtful({ notAfter: instant(now - 1) }), deduplicating, unknown('too-late', tooLate)],
    ['releases an open call for another claim after its lease', claimed({ leaseUntil: now }), provider(), released],
    ['releases a call if the clock has jumped ahead since it was claimed', claimed(claimedLongAgo), provider(), released],
    [
      'keeps a call in doubt after its lease',
      doubtful({ leaseUntil: now }),
      deduplicating,
      { event: 'not-taken', to: 'doubt', at: now, dueAt: now },
    ],
    [
      'fails a call without notAfter that was refused and then not tried again for an hour',
      claimed({ firstAttemptAt: instant(now - hour - 1) }),
      provider(),
      failed('too-late', tooLate),
    ],
    [
      "ends a call in doubt without notAfter that wasn't tried again for an hour",
      doubtful({ firstAttemptAt: instant(now - hour - 1) }),
      deduplicating,
      unknown('too-late', tooLate),
    ],
    [
      "doesn't hand off a call in doubt again if a list or calling hours forbid it",
      doubtful({ stopped: 'Calling hours have ended.' }),
      deduplicating,
      unknown('must-not-repeat', 'The provider may have received this call. Calling hours have ended.'),
    ],
    [
      "uses the outcome from the call's own provider",
      claimed({ handoff: 'taken', provider: 'simulated' }),
      concluding,
      { event: 'outcome', to: 'busy', detail: null, endedAt: instant(now - 1), durationSeconds: null },
    ],
    ['ends a taken call without an outcome', claimed({ handoff: 'taken' }), provider(), unreported],
    ["doesn't make up an outcome for a call that another provider has", claimed({ handoff: 'taken' }), concluding, unreported],
  ];
  for (const [rule, call, by, step] of table) it(rule, () => expect(nextStep(call, by, now)).to.deep.equal(step));
});

describe('when a hand-off is settled', () => {
  const settle = (call: ClaimedCall, result: HandoffResult, by = provider()) => toSettlement(call, result, by, now, () => 0.5);
  const notTaken = { kind: 'not-taken', detail: 'busy', reason: 'HTTP 503' } as const;
  const lost = { kind: 'answer-lost', detail: 'lost', reason: 'no response' } as const;
  const doubt = doubtful();
  const retried = { event: 'not-taken', to: 'retry', at: now, dueAt: instant(now + 600), detail: 'busy' };
  const lostAndRetried = { event: 'answer-lost', to: 'doubt', at: now, dueAt: instant(now + 600), detail: 'lost' };
  const windowOver = { firstAttemptAt: instant(now - dialingLimits.window.toMillis()) };
  const table: [string, () => ReturnType<typeof settle>, object][] = [
    [
      'a taken call waits four hours for its outcome',
      () => settle(claimed(), { kind: 'taken' }),
      { event: 'taken', to: 'taken', dialedAt: now, dueAt: instant(now + 4 * hour) },
    ],
    [
      'a taken call gets its outcome at the time that the provider gives',
      () => settle(doubt, { kind: 'taken', outcomeAt: instant(now + 7) }),
      { event: 'taken', to: 'taken', dialedAt: now, dueAt: instant(now + 7) },
    ],
    ['a rejected call fails', () => settle(claimed(), { kind: 'rejected', detail: 'no', reason: 'HTTP 422' }), failed('rejected', 'no')],
    ["a call that wasn't taken is retried", () => settle(claimed(), notTaken), retried],
    ["a call in doubt that wasn't taken stays in doubt", () => settle(doubt, notTaken), { ...retried, to: 'doubt' }],
    [
      'Retry-After delays the retry',
      () => settle(claimed(), { ...notTaken, retryAfter: 60 }),
      { ...retried, dueAt: instant(now + 60_000) },
    ],
    ['a call fails when its retry window is over', () => settle(claimed(windowOver), notTaken), failed('too-late', 'busy')],
    ["a call isn't ended if the clock has jumped ahead during the hand-off", () => settle(claimed(claimedLongAgo), notTaken), retried],
    [
      "a call in doubt isn't ended if the clock has jumped ahead during the hand-off",
      () => settle({ ...doubt, ...claimedLongAgo }, notTaken),
      { ...retried, to: 'doubt' },
    ],
    [
      "a lost response doesn't end the call if the clock has jumped ahead and the provider deduplicates",
      () => settle(claimed(claimedLongAgo), lost, deduplicating),
      lostAndRetried,
    ],
    [
      "a call is due right after notAfter if it can't be retried before, so that it lapses",
      () => settle(claimed({ notAfter: instant(now + 300) }), notTaken),
      { ...retried, dueAt: instant(now + 301) },
    ],
    [
      'a call in doubt becomes unknown if its retry would come after notAfter',
      () => settle({ ...doubt, notAfter: instant(now + 599) }, notTaken),
      unknown('too-late', 'busy'),
    ],
    ['notAfter extends the retry window', () => settle(claimed({ ...windowOver, notAfter: instant(now + 600) }), notTaken), retried],
    [
      'a call in doubt becomes unknown when its retry window is over',
      () => settle({ ...doubt, ...windowOver }, notTaken),
      unknown('too-late', 'busy'),
    ],
    ['a lost response makes the call unknown', () => settle(claimed(), lost), unknown('must-not-repeat', 'lost')],
    ['a lost response is retried if the provider deduplicates', () => settle(claimed(), lost, deduplicating), lostAndRetried],
    [
      'a lost response is retried at the very end of the retry window',
      () => settle(claimed({ notAfter: instant(now + 600) }), lost, deduplicating),
      lostAndRetried,
    ],
    [
      'a lost response makes the call unknown when the retry window is over',
      () => settle(claimed(windowOver), lost, deduplicating),
      unknown('must-not-repeat', 'lost'),
    ],
  ];
  for (const [rule, settlement, expected] of table) it(rule, () => expect(settlement()).to.deep.equal(expected));
});

describe('the delay before a retry', () => {
  const longest = () => 1 - Number.EPSILON;
  it('doubles from one second up to five minutes', () => {
    const delays = Array.from({ length: 12 }, (_, n) => Math.ceil((retryDelay(n + 1, longest) - 100) / 1_000));
    expect(delays).to.deep.equal([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
  });
  it('is randomized, but at least a tenth of a second', () => {
    for (const attempt of [1, 5, 40]) expect(retryDelay(attempt, () => 0)).to.equal(100);
  });
});

describe('time limits that depend on each other', () => {
  const { answer, lease, maxRetryDelay, window, outcome, life } = dialingLimits;
  const ordered: [string, number, number][] = [
    ['a statement times out before its request must be answered', deadlines.statement, deadlines.answer],
    ['a provider responds within the lease', answer.toMillis(), lease.toMillis()],
    ['a retry comes within the retry window', maxRetryDelay.toMillis(), window.toMillis()],
    ['trouble with a provider is reported until the next retry', maxRetryDelay.toMillis(), troubleLimits.noRetry.toMillis()],
    ['a lease is shorter than the wait for an outcome', lease.toMillis(), outcome.toMillis()],
    ["a call is given up before it's ended as overdue", Math.max(window.toMillis(), outcome.toMillis()), life.toMillis()],
    ['clocks may differ by less than the retry window', clockSkew.toMillis(), window.toMillis()],
  ];
  it('a provider has ten seconds to respond', () => expect(answer.toMillis()).to.equal(10_000));
  for (const [rule, shorter, longer] of ordered) it(rule, () => expect(shorter).to.be.below(longer));
});
