import { mock } from 'node:test';
import { expect } from 'chai';
import pino from 'pino';
import { type Dialer, startDialer } from '../../core/dialer/loop.ts';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { instant } from '../../core/domain/instant.ts';
import type { ClaimedCall, DialingStore, HandoffResult, Provider } from '../../core/domain/ports.ts';
import { claimedCall } from '../support/claimed-call.ts';
import { fakeClock } from '../support/clock.ts';
import { until } from '../support/until.ts';

describe("the dialer's loop", () => {
  let clock: ReturnType<typeof fakeClock>;
  let dialer: Dialer;
  let due: ClaimedCall[];
  /** Everything that the dialer queried and reported, in order. */
  let seen: unknown[];
  let store: DialingStore;
  let results: ((result: HandoffResult) => void)[];
  const provider: Provider = {
    ...{ name: 'webhook', deduplicates: false, conclude: () => null },
    handOff: ({ contactId }) => {
      seen.push(`hand off ${contactId}`);
      return new Promise((resolve) => results.push(resolve));
    },
  };

  beforeEach(() => {
    clock = fakeClock();
    [due, seen, results] = [[], [], []];
    store = recordingStore(due, seen);
    // The time between two polls passes only when a test advances these timers.
    mock.timers.enable({ apis: ['setTimeout'] });
  });
  afterEach(async () => {
    const closing = dialer.close();
    for (const resolve of results) resolve({ kind: 'taken' });
    await closing;
    mock.timers.reset();
  });

  const claimed = (contactId: string, more: Partial<ClaimedCall> = {}) =>
    claimedCall({ contactId, firstAttemptAt: clock.now(), leaseUntil: instant(clock.now() + 30_000), ...more });
  const start = async (concurrency = 4, of = provider) => {
    const warn = (...line: unknown[]) => seen.push(line);
    const log = Object.assign(pino({ level: 'silent' }), { warn });
    const observer = {
      onClaim: (calls: number) => seen.push(`claimed ${calls}`),
      onHandoff: (result: string) => seen.push(`handed off: ${result}`),
      onLeaseLost: () => seen.push('lease lost'),
      onOutcome: (state: string) => seen.push(`outcome ${state}`),
      onResult: () => undefined,
    };
    dialer = startDialer({
      store,
      provider: of,
      concurrency,
      pace: null,
      clock,
      isTrusted: async () => true,
      random: () => 0.5,
      log,
      observer,
    });
    await turns();
  };
  const answer = async (result: HandoffResult = { kind: 'taken' }) => {
    results.shift()?.(result);
    await turns();
  };
  const wake = async () => {
    dialer.wake();
    await turns();
  };

  it('checks for due calls immediately, every second, and when notified', async () => {
    await start();
    expect(seen).to.deep.equal(['claim 4']);
    mock.timers.tick(999);
    await turns();
    expect(seen).to.deep.equal(['claim 4']);
    mock.timers.tick(1);
    await turns();
    await wake();
    expect(seen).to.deep.equal(['claim 4', 'claim 4', 'claim 4']);
  });

  it('checks again if it was notified during a check', async () => {
    let wakeIt = () => dialer.wake();
    const { claim } = store;
    store.claim = async (...args) => {
      const claimed = await claim(...args);
      wakeIt();
      wakeIt = () => undefined;
      return claimed;
    };
    await start();
    expect(seen).to.deep.equal(['claim 4', 'claim 4']);
  });

  it('hands off claimed calls and checks for more at the same time', async () => {
    due.push(claimed('a'));
    await start();
    expect(seen).to.deep.equal(['claim 4', 'claimed 1', 'hand off a', 'claim 3']);
    await answer();
    expect(seen.slice(4)).to.deep.equal(['handed off: taken', 'settle a taken', 'claim 4']);
  });

  it("claims nothing while it's at its concurrency limit, and continues as soon as a hand-off is done", async () => {
    due.push(claimed('a'), claimed('b'), claimed('c'));
    await start(2);
    await wake();
    expect(seen).to.deep.equal(['claim 2', 'claimed 2', 'hand off a', 'hand off b']);
    await answer();
    expect(seen.slice(4)).to.deep.equal(['handed off: taken', 'settle a taken', 'claim 1', 'claimed 1', 'hand off c']);
  });

  it('settles a call that must not be handed off, and reports its result', async () => {
    const conclusion = { state: 'busy', detail: null, endedAt: instant(1), durationSeconds: null } as const;
    due.push(
      claimed('doubtful', { handoff: 'doubt' }),
      claimed('overdue', { handoff: 'taken' }),
      claimed('late', { notAfter: instant(1) }),
    );
    await start(4, { ...provider, conclude: () => conclusion });
    expect(seen.slice(2)).to.have.members([
      ...['handed off: doubt', 'settle doubtful unknown', 'outcome busy', 'settle overdue busy', 'settle late retry'],
      ...['claim 1', 'claim 4'],
    ]);
  });

  it("lets a claim's calls leave one after the other, and puts those back that can't leave in time", async () => {
    const at = performance.now();
    due.push(claimed('late', { leaves: { at: at - 100, by: at - 50 } }), claimed('next', { leaves: { at: at - 20, by: at + 60_000 } }));
    await start();
    await until(() => results.length === 1);
    expect(seen.filter((what) => !String(what).startsWith('claim'))).to.deep.equal(['settle late retry', 'hand off next']);
  });

  it('reports a claim that was lost to another dialer', async () => {
    due.push(claimed('a'));
    store.settle = async () => false;
    await start();
    await answer();
    expect(seen.slice(4)).to.deep.equal(['handed off: taken', 'lease lost', 'claim 4']);
  });

  it("records a call's result again after an error, but hands the call off only once", async () => {
    let failures = 1;
    const { settle } = store;
    store.settle = async (...args) => {
      if (failures-- > 0) throw new Error('down');
      return settle(...args);
    };
    due.push(claimed('a'));
    await start();
    await answer();
    await until(() => seen.includes('settle a taken'));
    await turns();
    expect(seen.slice(4)).to.deep.equal(['handed off: taken', 'settle a taken', 'claim 4']);
  });

  it("if a call's result can't be recorded, leaves the call to be claimed again when its lease expires", async () => {
    const down = new Error('down');
    store.settle = () => {
      seen.push('settle');
      return Promise.reject(down);
    };
    due.push(claimed('a'));
    await start();
    clock.advance({ seconds: 30 });
    await answer();
    expect(seen.slice(4)).to.deep.equal([
      ...['handed off: taken', 'settle'],
      ...[[{ err: down, contactId: 'a' }, "couldn't record the hand-off's result"], 'claim 4'],
    ]);
  });

  it('continues at the next interval if a claim fails', async () => {
    const down = new Error('down');
    store.claim = () => Promise.reject(down);
    await start();
    const failed = [{ err: down }, 'claiming calls failed'];
    expect(seen).to.deep.equal([failed]);
    mock.timers.tick(1_000);
    await turns();
    expect(seen).to.deep.equal([failed, failed]);
  });

  it('recovers postponed calls after a fast clock is set back by more than the allowed skew', async () => {
    await start();
    clock.advance({ minutes: -5 });
    await wake();
    clock.advance({ minutes: -5, milliseconds: -1 });
    await wake();
    await wake();
    expect(seen).to.deep.equal(['claim 4', 'claim 4', `recover ${clock.now()} true`, 'claim 4', 'claim 4']);
  });

  it("makes a call due again if its hand-off can't begin soon enough after its claim", async () => {
    due.push(claimed('a', { claimedAt: performance.now() - dialingLimits.start.toMillis() }));
    await start(1);
    expect(seen.filter((one) => typeof one === 'string').slice(0, 3)).to.deep.equal(['claim 1', 'claimed 1', 'settle a retry']);
  });

  it("waits for hand-offs in flight when it's closed, tries once to settle them, and doesn't claim more calls", async () => {
    store.settle = () => {
      seen.push('settle');
      return Promise.reject(new Error('down'));
    };
    due.push(claimed('a'));
    await start(1);
    due.push(claimed('b'));
    let isClosed = false;
    const closed = dialer.close().then(() => {
      isClosed = true;
    });
    await turns();
    expect(isClosed).to.equal(false);
    await answer();
    await closed;
    await wake();
    expect(seen.filter((one) => typeof one === 'string')).to.deep.equal([
      ...['claim 1', 'claimed 1', 'hand off a', 'handed off: taken', 'settle'],
    ]);
  });
});

/** Creates a store that gives these calls to the dialer, and records what it's asked. */
function recordingStore(due: ClaimedCall[], seen: unknown[]): DialingStore {
  return {
    claim: async (limit) => {
      seen.push(`claim ${limit}`);
      return due.splice(0, limit);
    },
    settle: async ({ contactId }, { to }) => {
      seen.push(`settle ${contactId} ${to}`);
      return true;
    },
    recoverFromClockStep: async (now, hasStepped) => seen.push(`recover ${now} ${hasStepped}`),
    ...{ recordOutcome: unexpected, lapse: unexpected, endForgotten: unexpected, queue: unexpected, noteTrouble: unexpected },
    ...{ findTrouble: unexpected, contactTimes: unexpected, nextInPace: async () => null },
  };
}

/** Lets all code that isn't waiting for a timer or a provider continue. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function unexpected(): never {
  throw new Error("The dialer doesn't need this method.");
}
