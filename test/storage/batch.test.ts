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
    await turns();
  };
  return { ask, runs, finish };
}

/** Lets the event loop turn: a batch begins in the turn after its requests, and is answered in the one after its end. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe('a batch', () => {
  it('starts without waiting for a lone request', async () => {
    const { ask, runs } = controlled();
    void ask(1);
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1]]);
  });

  it('takes in all that arrives in one turn of the event loop', async () => {
    const { ask, runs } = controlled();
    for (const n of [1, 2, 3]) void ask(n);
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1, 2, 3]]);
  });

  it('takes in all that arrived while the one before was under way, up to its size', async () => {
    const { ask, runs, finish } = controlled();
    const first = ask(1);
    await turns();
    const answers = Promise.all([first, ...[2, 3, 4, 5, 6].map(ask)]);
    await finish(0);
    await finish(1);
    await finish(2);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2, 3, 4, 5], [6]]);
    expect(await answers).to.deep.equal([1, 2, 3, 4, 5, 6].map((n) => `answer to ${n}`));
  });

  it('runs beside others in as many lanes as there are', async () => {
    const { ask, runs } = controlled({ lanes: 2 });
    for (const n of [1, 2, 3]) {
      void ask(n);
      await turns();
    }
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2]]);
  });

  it('leaves what does not fit to the next lane', async () => {
    const { ask, runs } = controlled({ size: 2, lanes: 2 });
    for (const n of [1, 2, 3, 4, 5]) void ask(n);
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([
      [1, 2],
      [3, 4],
    ]);
  });

  it('fails all of its requests when it fails, and none of the next', async () => {
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
