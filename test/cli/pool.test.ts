import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { runPool } from '../../cli/batch/pool.ts';
import { fakeTiming, untilAborted } from '../support/clock.ts';

/** How to run a pool: without waiting, unless the test gives a rate. */
const schedule = (concurrency: number, rate?: number) => ({
  pace: { concurrency, rate },
  stop: new AbortController(),
  timing: fakeTiming(),
});
const list = (count: number) => Array.from({ length: count }, (_, n) => n);
async function* numbers(count: number): AsyncGenerator<number> {
  yield* list(count);
}

describe('a worker pool', () => {
  it('processes each item once and never exceeds its concurrency', async () => {
    const seen: number[] = [];
    let [running, most] = [0, 0];
    await runPool(numbers(20), schedule(3), async (n) => {
      most = Math.max(most, ++running);
      await nextTurn();
      seen.push(n);
      running--;
    });
    expect([seen.toSorted((a, b) => a - b), most]).to.deep.equal([list(20), 3]);
  });

  it('after the first error, finishes items in flight without starting others, and throws that error', async () => {
    const finished: number[] = [];
    const three = schedule(3);
    const running = runPool(numbers(20), three, async (n) => {
      await nextTurn();
      if (n === 0) throw new Error('first');
      await nextTurn();
      finished.push(n);
      if (n === 1) throw new Error('second');
    });
    expect(await running.catch((error: unknown) => error)).to.have.property('message', 'first');
    expect(finished).to.deep.equal([1, 2]);
    expect(three.stop.signal.aborted).to.equal(true);
  });

  it("doesn't start another item after it's stopped, and doesn't wait for busy slots", async () => {
    const started: number[] = [];
    const slow = schedule(4, 0.001);
    await runPool(numbers(20), { ...slow, timing: fakeTiming(untilAborted) }, async (n) => {
      started.push(n);
      slow.stop.abort();
    });
    expect(started).to.deep.equal([0]);
  });

  it('starts items at its rate, however quickly they finish', async () => {
    const fast = schedule(1, 20);
    const startedAt: number[] = [];
    await runPool(numbers(3), fast, async () => void startedAt.push(fast.timing.elapsed()));
    expect(startedAt).to.deep.equal([0, 50, 100]);
    const waits: number[] = [];
    const timing = { ...fakeTiming(), wait: async (milliseconds: number) => void waits.push(milliseconds) };
    await runPool(numbers(3), { ...schedule(8, 20), timing }, () => Promise.resolve());
    expect(waits).to.deep.equal([50, 100]);
  });

  it('if its input throws an error, finishes the items in flight and throws that error', async () => {
    const finished: number[] = [];
    async function* breaking() {
      yield* [1, 2];
      throw new Error('broken');
    }
    const running = runPool(breaking(), schedule(4), async (n) => {
      await nextTurn();
      finished.push(n);
    });
    expect(await running.catch((error: unknown) => error)).to.have.property('message', 'broken');
    expect(finished).to.deep.equal([1, 2]);
  });
});
