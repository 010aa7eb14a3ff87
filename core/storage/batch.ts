import { deadlines } from '../domain/deadlines.ts';
import { Problem } from '../domain/problem.ts';

/** How many requests went into one batch. */
export type BatchObserver = (size: number) => void;

/** By when a request has to be answered: milliseconds of `performance.now()`. */
type Timed = { deadline: number };
type Pending<Input, Output> = { input: Input; resolve: (output: Output) => void; reject: (error: unknown) => void };

/** So many requests may wait: at 15,000 a second they are gone in 0.15 s, and a database that stands still holds no more memory than theirs. */
const mostWaiting = 2_000;
/** In ms: how late a request may be told that its time is over. */
const watchEvery = 250;

/**
 * Shares round trips: what arrives in one turn of the event loop, or while other batches are under way, goes into one batch. No timer is
 * involved, so a lone request waits for nothing.
 *
 * A request whose deadline passes fails with `unavailable`, and so does one that finds the queue full.
 *
 * @param options.run answers a batch, in its order, or fails it as a whole
 * @param options.confirm looks, before a batch is answered, whether what it did will last; the next batch does not wait for it
 * @param options.size the most requests in one batch
 * @param options.lanes how many batches may be under way at once
 * @param options.isFaultOfOne whether an error may come from a single request: those of its batch are then run again, each by itself
 */
export function batched<Input extends Timed, Output>(options: {
  run: (inputs: Input[]) => Promise<Output[]>;
  confirm?: (inputs: Input[], outputs: Output[]) => Promise<void>;
  size: number;
  maxInFlight: number;
  isFaultOfOne: (error: unknown) => boolean;
  observe: BatchObserver;
}): (input: Input) => Promise<Output> {
  type Batch = Pending<Input, Output>[];
  let waiting: Batch = [];
  const underWay = new Set<Batch>();
  let inFlight = 0;
  let isScheduled = false;
  let isWatched = false;

  /** Runs a batch. @returns what hands each request its answer */
  async function run(batch: Batch): Promise<() => Promise<void>> {
    const inputs = batch.map(({ input }) => input);
    try {
      const outputs = await options.run(inputs);
      return async () => {
        await options.confirm?.(inputs, outputs);
        answer(batch, outputs);
      };
    } catch (error) {
      if (batch.length === 1 || !options.isFaultOfOne(error)) return () => Promise.reject(error);
      // All at once: where one of them waits for a lock again, the others must not wait behind it.
      await Promise.all(refuseLate(batch, deadlines.statement).map(async (one) => settle(await run([one]), [one])));
      return async () => undefined;
    }
  }

  async function settle(answerBatch: () => Promise<void>, batch: Batch): Promise<void> {
    await answerBatch().catch((error: unknown) => {
      for (const { reject } of batch) reject(error);
    });
    underWay.delete(batch);
  }

  async function runNext(): Promise<void> {
    isScheduled = false;
    if (inFlight >= options.maxInFlight) return;
    const batch = refuseLate(waiting.splice(0, options.size), deadlines.statement);
    if (batch.length === 0) return;
    inFlight++;
    underWay.add(batch);
    // What did not fit goes into the next lane.
    if (waiting.length > 0) schedule();
    options.observe(batch.length);
    const answerBatch = await run(batch);
    inFlight--;
    // The next batch first: the database works on it while the answers to this one are written.
    schedule();
    setImmediate(() => settle(answerBatch, batch));
  }

  /** In the end of this turn of the event loop: all requests that have come in one go share a batch. */
  function schedule(): void {
    if (isScheduled || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(runNext);
  }

  /** One timer for all: at 30,000 requests a second, one for each would cost more than the queue. */
  function watch(): void {
    if (isWatched) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      waiting = refuseLate(waiting, deadlines.statement);
      // The statement goes on, and what comes of it is for the next request to see.
      for (const batch of underWay) refuseLate(batch, 0);
      if (waiting.length > 0 || underWay.size > 0) watch();
    }, watchEvery).unref();
  }

  return (input) =>
    new Promise((resolve, reject) => {
      if (waiting.length >= mostWaiting)
        return reject(new Problem('unavailable', 'Too many requests wait for the database. Try again shortly.', { retryAfter: 2 }));
      waiting.push({ input, resolve, reject });
      if (inFlight < options.maxInFlight) schedule();
      watch();
    });
}

/**
 * Rejects the requests whose deadline is less than so many milliseconds away. @returns the others
 */
function refuseLate<One extends Pending<Timed, never>>(requests: One[], needed: number): One[] {
  const earliest = performance.now() + needed;
  return requests.filter(({ input, reject }) => {
    if (input.deadline > earliest) return true;
    reject(
      new Problem('unavailable', 'The database did not answer in time. Try again shortly, under the same request id.', { retryAfter: 2 }),
    );
    return false;
  });
}

function answer<Output>(batch: readonly Pending<unknown, Output>[], outputs: readonly Output[]): void {
  batch.forEach(({ resolve, reject }, index) => {
    const output = outputs[index];
    if (output === undefined) reject(new Error('A batch left a request unanswered.'));
    else resolve(output);
  });
}
