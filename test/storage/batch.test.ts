import { expect } from 'chai';
import { deadlines } from '../../core/domain/deadlines.ts';
import { Problem } from '../../core/domain/problem.ts';
import { batched } from '../../core/storage/batch.ts';

type Asked = { n: number; deadline: number };

/** A batch runner whose batches end when the test says so. */
function controlled({
  size = 4,
  maxInFlight = 1,
  confirm = async () => undefined,
}: {
  size?: number;
  maxInFlight?: number;
  confirm?: () => Promise<void>;
} = {}) {
  const runs: { inputs: number[]; answer: (outputs: string[]) => void; fail: (error: Error) => void }[] = [];
  const request = batched<Asked, string>({
    run: (inputs) => new Promise((answer, fail) => runs.push({ inputs: inputs.map(({ n }) => n), answer, fail })),
    confirm,
    size,
    maxInFlight,
    isFaultOfOne: () => false,
    observe: () => undefined,
  });
  /** @param left how many milliseconds there are until the request's deadline */
  const ask = (n: number, left: number = deadlines.answer) => request({ n, deadline: performance.now() + left });
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

/** The code of the problem that a request fails with. */
async function failureOf(request: Promise<unknown>): Promise<unknown> {
  const error: unknown = await request.then(
    () => 'none',
    (reason) => reason,
  );
  return error instanceof Problem ? { code: error.code, retryAfter: error.retryAfter } : error;
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
    const answers = Promise.all([first, ...[2, 3, 4, 5, 6].map((n) => ask(n))]);
    await finish(0);
    await finish(1);
    await finish(2);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2, 3, 4, 5], [6]]);
    expect(await answers).to.deep.equal([1, 2, 3, 4, 5, 6].map((n) => `answer to ${n}`));
  });

  it('runs beside others in as many lanes as there are', async () => {
    const { ask, runs } = controlled({ maxInFlight: 2 });
    for (const n of [1, 2, 3]) {
      void ask(n);
      await turns();
    }
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2]]);
  });

  it('leaves what does not fit to the next lane', async () => {
    const { ask, runs } = controlled({ size: 2, maxInFlight: 2 });
    for (const n of [1, 2, 3, 4]) void ask(n);
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([
      [1, 2],
      [3, 4],
    ]);
  });

  it('takes half of a long queue, and no more than fits a statement', async () => {
    const { ask, runs, finish } = controlled();
    for (let n = 0; n < 300; n++) void ask(n);
    await turns();
    for (let index = 0; index < 5; index++) await finish(index);
    expect(runs.map(({ inputs }) => inputs.length)).to.deep.equal([128, 86, 43, 22, 11, 5]);
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

  it('is run again, each request by itself, when one of its rows may be at fault', async () => {
    const run = async (inputs: Asked[]) => {
      if (inputs.some(({ n }) => n === 3)) throw new Error('bad row');
      return inputs.map(({ n }) => String(n));
    };
    const ask = batched<Asked, string>({ run, size: 10, maxInFlight: 1, isFaultOfOne: () => true, observe: () => undefined });
    const deadline = performance.now() + deadlines.answer;
    const settled = await Promise.allSettled([1, 2, 3, 4].map((n) => ask({ n, deadline })));
    expect(settled.map(({ status }) => status)).to.deep.equal(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  });

  it('answers nobody when what it did cannot be confirmed', async () => {
    const { ask, finish } = controlled({ confirm: () => Promise.reject(new Error('not committed')) });
    const settled = Promise.allSettled([ask(1), ask(2)]);
    await turns();
    await finish(0);
    expect((await settled).map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
  });

  it('lets the next one begin while it is confirmed', async () => {
    const { ask, runs, finish } = controlled({ size: 1, confirm: () => new Promise(() => undefined) });
    void ask(1);
    void ask(2);
    await turns();
    await finish(0);
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1], [2]]);
  });

  it('leaves out a request that has no time left for a statement', async () => {
    const { ask, runs } = controlled();
    const failed = failureOf(ask(1, deadlines.statement));
    void ask(2);
    expect(await failed).to.deep.equal({ code: 'unavailable', retryAfter: 2 });
    await turns();
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[2]]);
  });

  it('fails a request whose time passes in the queue, while the database stands still', async () => {
    const { ask, runs } = controlled();
    void ask(1);
    await turns();
    expect(await failureOf(ask(2, deadlines.statement + 1))).to.deep.equal({ code: 'unavailable', retryAfter: 2 });
    expect(runs.map(({ inputs }) => inputs)).to.deep.equal([[1]]);
  });

  it('fails a request whose deadline passes while its statement is under way', async () => {
    const { ask, runs } = controlled();
    const failed = failureOf(ask(1, deadlines.statement + 20));
    await turns();
    expect(runs).to.have.length(1);
    expect(await failed).to.deep.equal({ code: 'unavailable', retryAfter: 2 });
  });

  it('refuses at once what finds two thousand requests waiting', async () => {
    const { ask } = controlled();
    void ask(0);
    await turns();
    const waiting = Array.from({ length: 2_000 }, (_, n) => ask(n));
    expect(await failureOf(ask(2_001))).to.deep.equal({ code: 'unavailable', retryAfter: 2 });
    void Promise.allSettled(waiting);
  });
});
