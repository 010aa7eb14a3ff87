import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { runPool } from '../../cli/batch/pool.ts';

const pace = (concurrency: number) => ({ concurrency, rate: undefined });
const list = (count: number) => Array.from({ length: count }, (_, n) => n);
async function* numbers(count: number): AsyncGenerator<number> {
  yield* list(count);
}

describe('a worker pool', () => {
  it('processes each item once and never exceeds its concurrency', async () => {
    const seen: number[] = [];
    let [running, most] = [0, 0];
    await runPool(numbers(20), pace(3), new AbortController(), async (n) => {
      most = Math.max(most, ++running);
      await nextTurn();
      seen.push(n);
      running--;
    });
    expect([seen.toSorted((a, b) => a - b), most]).to.deep.equal([list(20), 3]);
  });

  it('after the first error, finishes items in flight without starting others, and throws that error', async () => {
    const finished: number[] = [];
    const stop = new AbortController();
    const running = runPool(numbers(20), pace(3), stop, async (n) => {
      await nextTurn();
      if (n === 0) throw new Error('first');
      await nextTurn();
      finished.push(n);
      if (n === 1) throw new Error('second');
    });
    expect(await running.catch((error: unknown) => error)).to.have.property('message', 'first');
    expect(finished).to.deep.equal([1, 2]);
    expect(stop.signal.aborted).to.equal(true);
  });

  it("doesn't start another item after it's stopped, and doesn't wait for busy slots", async () => {
    const started: number[] = [];
    const stop = new AbortController();
    await runPool(numbers(20), { concurrency: 4, rate: 0.001 }, stop, async (n) => {
      started.push(n);
      stop.abort();
    });
    expect(started).to.deep.equal([0]);
  });

  it('starts items at its rate, however quickly they finish', async () => {
    const startedAt: number[] = [];
    // On a busy machine, the first item may start late, but the others don't wait for it.
    const begun = performance.now();
    await runPool(numbers(3), { concurrency: 8, rate: 20 }, new AbortController(), async () => void startedAt.push(performance.now()));
    expect((startedAt[2] ?? 0) - begun).to.be.greaterThan(95);
  });

  it('if its input throws an error, finishes the items in flight and throws that error', async () => {
    const finished: number[] = [];
    async function* breaking() {
      yield* [1, 2];
      throw new Error('broken');
    }
    const running = runPool(breaking(), pace(4), new AbortController(), async (n) => {
      await nextTurn();
      finished.push(n);
    });
    expect(await running.catch((error: unknown) => error)).to.have.property('message', 'broken');
    expect(finished).to.deep.equal([1, 2]);
  });
});
