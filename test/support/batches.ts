import { mock } from 'node:test';
import { deadlines } from '../../core/domain/deadlines.ts';
import { Problem } from '../../core/domain/problem.ts';
import { batched } from '../../core/storage/engine/batch.ts';

type Asked = { n: number; deadline: number };

/** Creates a batch runner whose batches end when the test ends them. */
export function controlled({
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
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns the error that a request fails with; for a problem, what its caller sees. */
export async function rejection(request: Promise<unknown>): Promise<unknown> {
  const error: unknown = await request.then(
    () => 'none',
    (reason) => reason,
  );
  return error instanceof Problem ? { code: error.code, retryAfter: error.retryAfter, message: error.message } : error;
}

/** In ms. */
export const stillClock = { now: 0 };

/** The clock stands still until a test moves it. */
export function useStillClock(): void {
  beforeEach(() => {
    stillClock.now = 1_000;
    mock.method(performance, 'now', () => stillClock.now);
    mock.timers.enable({ apis: ['setTimeout'] });
  });
  afterEach(() => {
    // If a test mocked a timer function again, `reset` restores that mock before the timers. In the opposite order, the mocked function
    // would come back. Unlike `restoreAll`, `reset` also forgets the mock, so the function can't come back in the next file either.
    mock.reset();
  });
}
