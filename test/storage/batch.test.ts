import { expect } from 'chai';
import { batched } from '../../core/storage/batch.ts';

/** A batch runner whose batches end when the test says so. */
function controlled({
  size = 4,
  lanes = 1,
  isFaultOfOne = () => false,
}: {
  size?: number;
  lanes?: number;
  isFaultOfOne?: (error: unknown) => boolean;
} = {}) {
  const runs: { inputs: number[]; answer: (outputs: string[]) => void; fail: (error: Error) => void }[] = [];
  const ask = batched<number, string>({
    run: (inputs) => new Promise((answer, fail) => runs.push({ inputs, answer, fail })),
    size,
    lanes,
    isFaultOfOne,
    observe: () => undefined,
  });
  const finish = async (index: number) => {
    const run = runs[index];
    run?.answer(run.inputs.map((input) => `answer to ${input}`));
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { ask, runs, finish };
}

describe('a batch', () => {
  it('starts at once for a lone request', () => {
    const { ask, runs } = controlled();
    void ask(1);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1]]);
  });

  it('takes in all that arrived while the one before was under way, up to its size', async () => {
    const { ask, runs, finish } = controlled();
    const answers = Promise.all([1, 2, 3, 4, 5, 6].map(ask));
    await finish(0);
    await finish(1);
    await finish(2);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2, 3, 4, 5], [6]]);
    expect(await answers).to.deep.equal([1, 2, 3, 4, 5, 6].map((n) => `answer to ${n}`));
  });

  it('runs beside others in as many lanes as there are', () => {
    const { ask, runs } = controlled({ lanes: 2 });
    for (const n of [1, 2, 3]) void ask(n);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2]]);
  });

  it('fails all of its requests when it fails, and none of the next', async () => {
    const { ask, runs, finish } = controlled();
    const first = ask(1);
    const rest = Promise.allSettled([ask(2), ask(3)]);
    const last = (async () => {
      await rest;
      return ask(4);
    })();
    await finish(0);
    runs[1]?.fail(new Error('out'));
    await rest;
    await new Promise((resolve) => setImmediate(resolve));
    await finish(2);
    expect([await first, await last]).to.deep.equal(['answer to 1', 'answer to 4']);
    expect((await rest).map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
  });

  it('is run again one by one when one of its rows may be at fault', async () => {
    const run = async (inputs: number[]) => {
      if (inputs.includes(3)) throw new Error('bad row');
      return inputs.map(String);
    };
    const ask = batched<number, string>({ run, size: 10, lanes: 1, isFaultOfOne: () => true, observe: () => undefined });
    const settled = await Promise.allSettled([1, 2, 3, 4].map(ask));
    expect(settled.map(({ status }) => status)).to.deep.equal(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  });
});
