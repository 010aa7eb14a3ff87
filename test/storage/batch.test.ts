import { mock } from 'node:test';
import { expect } from 'chai';
import { Problem, ResultUnknown } from '../../core/domain/problem.ts';
import { controlled, rejection, stillClock, turns, useStillClock } from '../support/call-store.ts';

describe('a batch', () => {
  useStillClock();

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

  it('starts while another batch is running if it has at least as many requests as that one, or if that one takes a long time', async () => {
    const { ask, runs } = controlled({ maxInFlight: 2 });
    const askAll = async (...numbers: number[]) => {
      for (const n of numbers) void ask(n);
      await turns();
      return runs.map(({ inputs }) => inputs.length);
    };
    await askAll(1, 2, 3);
    expect(await askAll(4, 5)).to.deep.equal([3]);
    expect(await askAll(6)).to.deep.equal([3, 3]);

    const { ask: askAgain, runs: again } = controlled({ maxInFlight: 2 });
    for (const n of [1, 2]) void askAgain(n);
    await turns();
    void askAgain(3);
    mock.timers.tick(250);
    await turns();
    expect(again.map(({ inputs }) => inputs)).to.deep.equal([[1, 2], [3]]);
  });

  it('leaves requests that exceed its size to the next batch', async () => {
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
    const run = async (inputs: readonly { n: number }[]) => {
      if (inputs.some(({ n }) => n === 3)) throw new Error('bad row');
      return inputs.map(({ n }) => String(n));
    };
    const { ask } = controlled({ run, isSingleRowError: () => true, getShare: ({ n }) => String(n) });
    const settled = await Promise.allSettled([1, 2, 3, 4].map((n) => ask(n)));
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
    // One turn of the event loop to return the first batch's results, and one to start the next batch.
    expect(await countWrites(() => finish(0))).to.equal(idle + 2);
    expect(await countWrites(() => finish(1))).to.equal(idle + 1);
  });

  it('fails only the requests for which its statement returned no result', async () => {
    const { ask } = controlled({ run: async () => ['answer'] });
    const [first, second] = [1, 2].map((n) => ask(n));
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

  it('gives requesters places in turn, however many requests each one makes', async () => {
    const { ask, runs, finish } = controlled({ size: 4, getShare: ({ n }) => (n < 100 ? 'flood' : String(n)) });
    void ask(0);
    await turns();
    for (let n = 1; n <= 10; n++) void ask(n);
    for (const n of [100, 101, 100]) void ask(n);
    for (let index = 0; index < 4; index++) await finish(index);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[0], [1, 100, 101, 2, 100, 3, 4], [5, 6, 7, 8], [9, 10]]);
  });

  it('gives a requester at most 12 places if another requester has sent a request within the last second, and all places otherwise', async () => {
    const { ask, runs, finish } = controlled({ size: 32, getShare: ({ n }) => (n < 100 ? 'flood' : 'quiet') });
    const flood = (count: number) => void Promise.all(Array.from({ length: count }, (_, n) => ask(n)));
    void ask(100);
    await turns();
    flood(24);
    for (let index = 0; index < 3; index++) await finish(index);
    stillClock.now += 1_000;
    flood(33);
    await turns();
    await finish(3);
    expect(runs.map(({ inputs }) => inputs.length)).to.deep.equal([1, 12, 12, 32, 1]);
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
