import { mock } from 'node:test';
import { expect } from 'chai';
import { deadlines } from '../../core/domain/deadlines.ts';
import { Problem, ResultUnknown } from '../../core/domain/problem.ts';
import { batched } from '../../core/storage/engine/batch.ts';

type Asked = { n: number; deadline: number };

/** A batch runner whose batches end when the test ends them. */
function controlled({
  size = 4,
  maxInFlight = 1,
  confirm = async () => undefined,
  getShare = () => 'one',
  countBytes = () => 0,
  changes = false,
  isSingleRowError = () => false,
}: {
  size?: number;
  maxInFlight?: number;
  confirm?: () => Promise<void>;
  getShare?: (asked: Asked) => string;
  countBytes?: (asked: Asked) => number;
  changes?: boolean;
  isSingleRowError?: (error: unknown) => boolean;
} = {}) {
  const runs: { inputs: number[]; send: () => void; answer: (outputs: string[]) => void; fail: (error: Error) => void }[] = [];
  const request = batched<Asked, string>({
    run: (inputs, send) => new Promise((answer, fail) => runs.push({ inputs: inputs.map(({ n }) => n), send, answer, fail })),
    ...(changes && { isUndone: (error: unknown) => error instanceof Error && error.message === 'undone' }),
    confirm,
    size,
    maxInFlight,
    getShare,
    countBytes,
    isSingleRowError,
    observe: () => undefined,
  });
  /** @param left the milliseconds until the request's deadline */
  const ask = (n: number, left: number = deadlines.answer) => request({ n, deadline: performance.now() + left });
  const finish = async (index: number) => {
    const run = runs[index];
    run?.answer(run.inputs.map((input) => `answer to ${input}`));
    await turns();
  };
  return { ask, runs, finish };
}

/** Lets the event loop turn: a batch starts in the turn after its requests, and their results arrive in the turn after its end. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** The error that a request fails with; for a problem, what its caller sees. */
async function rejection(request: Promise<unknown>): Promise<unknown> {
  const error: unknown = await request.then(
    () => 'none',
    (reason) => reason,
  );
  return error instanceof Problem ? { code: error.code, retryAfter: error.retryAfter, message: error.message } : error;
}

let milliseconds: number;

/** The clock stands still until a test moves it. */
function useStillClock(): void {
  beforeEach(() => {
    milliseconds = 1_000;
    mock.method(performance, 'now', () => milliseconds);
    mock.timers.enable({ apis: ['setTimeout'] });
  });
  afterEach(() => {
    // The latest mock is restored first; otherwise it would leave the mocked timers in place.
    mock.restoreAll();
    mock.timers.reset();
  });
}

describe('a batch', () => {
  useStillClock();

  it('starts without waiting for a single request', async () => {
    const { ask, runs } = controlled();
    void ask(1);
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1]]);
  });

  it('includes every request that arrives in one turn of the event loop', async () => {
    const { ask, runs } = controlled();
    for (const n of [1, 2, 3]) void ask(n);
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1, 2, 3]]);
  });

  it('includes every request that arrived during the previous batch, up to its size', async () => {
    const { ask, runs, finish } = controlled();
    const first = ask(1);
    await turns();
    const answers = Promise.all([first, ...[2, 3, 4, 5, 6].map((n) => ask(n))]);
    await finish(0);
    await finish(1);
    await finish(2);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2, 3, 4, 5], [6]]);
    expect(await answers).to.deep.equal([1, 2, 3, 4, 5, 6].map((n) => `answer to ${n}`));
  });

  it('runs concurrently with others, up to the limit', async () => {
    const { ask, runs } = controlled({ maxInFlight: 2 });
    for (const n of [1, 2, 3]) {
      void ask(n);
      await turns();
    }
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2]]);
  });

  it('leaves excess requests to the next batch', async () => {
    const { ask, runs } = controlled({ size: 2, maxInFlight: 2 });
    for (const n of [1, 2, 3, 4]) void ask(n);
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([
      [1, 2],
      [3, 4],
    ]);
  });

  it('takes half of a long queue, but no more than fits in a statement', async () => {
    const { ask, runs, finish } = controlled();
    for (let n = 0; n < 300; n++) void ask(n);
    await turns();
    for (let index = 0; index < 5; index++) await finish(index);
    expect(runs.map(({ inputs }) => inputs.length)).to.deep.equal([128, 86, 43, 22, 11, 5]);
  });

  it('fails all of its requests when it fails, but no request of the next batch', async () => {
    const { ask, runs, finish } = controlled();
    const first = ask(1);
    await turns();
    const rest = Promise.allSettled([ask(2), ask(3)]);
    const last = (async () => {
      await rest;
      return ask(4);
    })();
    await finish(0);
    runs[1]?.fail(new Error('out'));
    await rest;
    await turns();
    await finish(2);
    expect([await first, await last]).to.deep.equal(['answer to 1', 'answer to 4']);
    expect((await rest).map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
  });

  it('is retried one request at a time if one of its rows may have caused the error', async () => {
    const run = async (inputs: Asked[]) => {
      if (inputs.some(({ n }) => n === 3)) throw new Error('bad row');
      return inputs.map(({ n }) => String(n));
    };
    const ask = batched<Asked, string>({
      run,
      size: 10,
      maxInFlight: 1,
      isSingleRowError: () => true,
      getShare: String,
      observe: () => undefined,
    });
    const deadline = performance.now() + deadlines.answer;
    const settled = await Promise.allSettled([1, 2, 3, 4].map((n) => ask({ n, deadline })));
    expect(settled.map(({ status }) => status)).to.deep.equal(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  });

  it("fails all of its requests if its result can't be confirmed", async () => {
    const { ask, finish } = controlled({ confirm: () => Promise.reject(new Error('not committed')) });
    const settled = Promise.allSettled([ask(1), ask(2)]);
    await turns();
    await finish(0);
    expect((await settled).map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
  });

  it("lets the next batch start while it's being confirmed", async () => {
    const { ask, runs, finish } = controlled({ size: 1, confirm: () => new Promise(() => undefined) });
    void ask(1);
    void ask(2);
    await turns();
    await finish(0);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2]]);
  });

  it('schedules one turn of the event loop for any number of requests, but none while no batch can start', async () => {
    const { ask, finish } = controlled();
    const asked = mock.method(globalThis, 'setImmediate');
    const countWrites = async (act: () => unknown) => {
      const before = asked.mock.callCount();
      await act();
      return asked.mock.callCount() - before;
    };
    const idle = await countWrites(turns);
    const three = () => {
      for (const n of [1, 2, 3]) void ask(n);
    };
    expect(await countWrites(three)).to.equal(1);
    await turns();
    expect(await countWrites(() => void ask(4))).to.equal(0);
    // One turn to return the first batch's results, and one to start the next.
    expect(await countWrites(() => finish(0))).to.equal(idle + 2);
    expect(await countWrites(() => finish(1))).to.equal(idle + 1);
  });

  it('fails only the request for which it has no result', async () => {
    const run = async () => ['answer'];
    const ask = batched<Asked, string>({
      run,
      size: 10,
      maxInFlight: 1,
      isSingleRowError: () => false,
      getShare: String,
      observe: () => undefined,
    });
    const deadline = performance.now() + deadlines.answer;
    const [first, second] = [1, 2].map((n) => ask({ n, deadline }));
    const failure = second?.catch((error: Error) => error.message);
    expect([await first, await failure]).to.deep.equal(['answer', 'A batch left a request unanswered.']);
  });

  it("reports a change as unknown, unless it wasn't sent or its error says that it was rolled back", async () => {
    const { ask, runs } = controlled({ changes: true });
    const cases = [
      [false, 'out', 'out'],
      [true, 'undone', 'undone'],
      [true, 'out', "A statement was sent, but its result isn't known."],
    ] as const;
    for (const [n, [isSent, error, said]] of cases.entries()) {
      const asked = ask(n);
      await turns();
      if (isSent) runs[n]?.send();
      runs[n]?.fail(new Error(error));
      expect(await rejection(asked)).to.have.property('message', said);
      await turns();
    }
  });

  it("reports a change as unknown if it can't be confirmed, unless the check shows that it wasn't made", async () => {
    for (const [error, said] of [
      [new Error('no look'), ResultUnknown],
      [new Problem('unavailable', 'Not there.'), Problem],
    ] as const) {
      const { ask, finish } = controlled({ changes: true, confirm: () => Promise.reject(error) });
      const asked = ask(1).catch((reason: unknown) => reason);
      await turns();
      await finish(0);
      expect(await asked).to.be.instanceOf(said);
    }
  });

  it('gives each requester places in turn, however many requests a requester makes', async () => {
    const { ask, runs, finish } = controlled({ size: 4, getShare: ({ n }) => (n < 100 ? 'flood' : String(n)) });
    void ask(0);
    await turns();
    for (let n = 1; n <= 10; n++) void ask(n);
    for (const n of [100, 101, 100]) void ask(n);
    for (let index = 0; index < 4; index++) await finish(index);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[0], [1, 100, 101, 2, 100, 3, 4], [5, 6, 7, 8], [9, 10]]);
  });

  it('contains at most a megabyte, unless a single request is larger, and still gives places to every requester', async () => {
    const sizes = [600_000, 500_000, 5_000_000, 0, 10];
    const { ask, runs, finish } = controlled({
      size: 10,
      getShare: ({ n }) => (n < 4 ? 'flood' : 'quiet'),
      countBytes: ({ n }) => sizes[n] ?? 0,
    });
    for (const n of sizes.keys()) void ask(n);
    await turns();
    for (let index = 0; index < 4; index++) await finish(index);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[0, 4], [1], [2], [3]]);
  });

  it("makes room for another requester's request if a single requester has filled the queue", async () => {
    const { ask } = controlled({ getShare: ({ n }) => (n < 10_000 ? 'flood' : 'quiet') });
    void ask(0);
    await turns();
    const flood = Array.from({ length: 2_000 }, (_, n) => rejection(ask(n)));
    void ask(10_000);
    expect(await Promise.race([rejection(ask(2_001)), turns()])).to.have.property('code', 'unavailable');
    expect(await Promise.race([flood.at(-1), turns()])).to.have.property('code', 'unavailable');
    expect(await Promise.race([flood.at(-2), turns()])).to.equal(undefined);
  });

  it('refuses a request immediately if two thousand are waiting', async () => {
    const { ask } = controlled();
    void ask(0);
    await turns();
    const waiting = Array.from({ length: 2_000 }, (_, n) => ask(n));
    expect(await rejection(ask(2_001))).to.deep.equal({
      ...{ code: 'unavailable', retryAfter: 2, message: 'Too many requests are waiting for the database. Try again shortly.' },
    });
    void Promise.allSettled(waiting);
  });
});

describe("a request's deadline", () => {
  useStillClock();

  const pass = async (time: number) => {
    milliseconds += time;
    mock.timers.tick(time);
    await turns();
  };
  const late = {
    code: 'unavailable',
    retryAfter: 2,
    message: "The database didn't respond in time. Try again shortly, with the same request ID.",
  };
  /** The state of each of these requests so far: waiting, its result, or the problem. */
  const settleAll = (...requests: Promise<unknown>[]) => {
    const outcomes: unknown[] = requests.map(() => 'waits');
    for (const [n, request] of requests.entries()) {
      const note = (outcome: unknown) => {
        outcomes[n] = outcome;
      };
      request.then(note, note);
    }
    return outcomes;
  };

  it('keeps the request out of a batch if there is no time left for a statement', async () => {
    const { ask, runs } = controlled();
    const outcomes = settleAll(ask(1, deadlines.statement), ask(2, deadlines.statement + 1));
    await turns();
    expect(outcomes[0]).to.include(late);
    expect([outcomes[1], runs.map(({ inputs }) => inputs)]).to.deep.equal(['waits', [[2]]]);
  });

  it("lets requests with time left take the expired request's place, and doesn't start a batch without any", async () => {
    const { ask, runs } = controlled({ size: 2 });
    const late = settleAll(ask(1, 0));
    await turns();
    expect(runs).to.deep.equal([]);
    const outcomes = settleAll(...[0, 0, deadlines.answer, deadlines.answer].map((left, n) => ask(n, left)));
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[2, 3]]);
    expect([late, outcomes].flat().filter((outcome) => outcome === 'waits')).to.have.length(2);
  });

  it('fails the request in the queue while the database hangs, but not requests with time left', async () => {
    const { ask, runs, finish } = controlled();
    const outcomes = settleAll(ask(1));
    await turns();
    const queued = settleAll(ask(2, deadlines.statement + 500), ask(3, deadlines.statement + 501));
    await pass(250);
    expect(queued).to.deep.equal(['waits', 'waits']);
    await pass(250);
    expect(queued[0]).to.include(late);
    expect(queued[1]).to.equal('waits');
    await finish(0);
    expect([outcomes, runs.map(({ inputs }) => inputs)]).to.deep.equal([['answer to 1'], [[1], [3]]]);
  });

  it('fails the request while its statement is running, and the statement continues', async () => {
    const { ask, finish } = controlled();
    const outcomes = settleAll(ask(1, deadlines.statement + 250), ask(2, deadlines.statement + 251));
    await turns();
    await pass(deadlines.statement);
    expect(outcomes).to.deep.equal(['waits', 'waits']);
    await pass(250);
    expect(outcomes[0]).to.include(late);
    await finish(0);
    expect(outcomes[1]).to.equal('answer to 2');
  });

  it("reports the request's change as unknown if it was sent, and lets others in the batch complete", async () => {
    const { ask, runs, finish } = controlled({ changes: true });
    const outcomes = settleAll(ask(1, deadlines.statement + 250), ask(2, deadlines.statement + 251));
    await turns();
    runs[0]?.send();
    await pass(deadlines.statement + 250);
    expect(outcomes[0]).to.be.instanceOf(ResultUnknown);
    await finish(0);
    expect(outcomes[1]).to.equal('answer to 2');
  });

  it("doesn't fail the other requests of a batch that is retried one by one", async () => {
    const { ask, runs, finish } = controlled({ changes: true, isSingleRowError: () => true });
    const soon = rejection(ask(1, 3_100));
    const later = ask(2);
    await turns();
    // This happens behind a pooler, where an invalid row is found before anything may be committed.
    runs[0]?.fail(new Error('bad row'));
    await turns();
    for (const { send } of runs.slice(1)) send();
    milliseconds += 3_200;
    mock.timers.tick(250);
    await finish(2);
    expect(await soon).to.be.an.instanceOf(ResultUnknown);
    expect(await later).to.equal('answer to 2');
  });

  it("doesn't reject an unsent change while there is time left", async () => {
    const { ask, runs, finish } = controlled({ changes: true });
    const change = ask(1);
    await turns();
    mock.timers.tick(250);
    runs[0]?.send();
    await finish(0);
    expect(await change).to.equal('answer to 1');
  });

  it("fails the whole batch if a change wasn't sent in time, and doesn't send any of it", async () => {
    const { ask, runs } = controlled({ changes: true });
    const outcomes = settleAll(ask(1, deadlines.statement + 250), ask(2));
    await turns();
    await pass(deadlines.statement + 250);
    for (const outcome of outcomes) expect(outcome).to.include(late);
    expect(runs[0]?.send).to.throw(late.message);
  });

  it('prevents sending a change if waiting for a lock could take longer', async () => {
    const { ask, runs } = controlled({ changes: true });
    void ask(1, deadlines.lock + 1_000);
    void ask(2, deadlines.statement + 1).catch(() => undefined);
    await turns();
    milliseconds += deadlines.statement - deadlines.lock;
    expect(runs[0]?.send).not.to.throw();
    milliseconds += 2;
    expect(runs[0]?.send).to.throw(late.message);
  });

  it('is checked by a single timer while requests are waiting or running', async () => {
    const { ask, finish } = controlled();
    const timers = mock.method(globalThis, 'setTimeout');
    for (const n of [1, 2, 3]) void ask(n);
    await turns();
    expect(timers.mock.callCount()).to.equal(1);
    await pass(250);
    expect(timers.mock.callCount()).to.equal(2);
    await finish(0);
    await pass(250);
    await pass(250);
    expect(timers.mock.callCount()).to.equal(2);
    void ask(4);
    expect(timers.mock.callCount()).to.equal(3);
  });

  it('is still checked if the request arrives just before a check, when no other is pending', async () => {
    const { ask, finish } = controlled();
    void ask(1);
    await turns();
    await finish(0);
    const outcomes = settleAll(ask(2, deadlines.statement + 250));
    // Still the same turn, so its batch hasn't started.
    mock.timers.tick(250);
    await turns();
    await pass(deadlines.statement + 250);
    expect(outcomes[0]).to.include(late);
  });

  it('fails the rest of a batch that is retried one by one once there is no time left', async () => {
    const run = async (inputs: Asked[]) => {
      milliseconds += 10;
      throw new Error(`bad row among ${inputs.length}`);
    };
    const ask = batched<Asked, string>({
      run,
      size: 10,
      maxInFlight: 1,
      isSingleRowError: () => true,
      getShare: String,
      observe: () => undefined,
    });
    const outcomes = settleAll(...[5, 500].map((left, n) => ask({ n, deadline: milliseconds + deadlines.statement + left })));
    await turns();
    expect(outcomes[0]).to.include(late);
    expect(outcomes[1]).to.have.property('message', 'bad row among 1');
  });
});
