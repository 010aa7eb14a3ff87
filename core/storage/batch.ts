import { deadlines } from '../domain/deadlines.ts';
import { Problem } from '../domain/problem.ts';

export type BatchObserver = (size: number) => void;

/** A request must be answered by `deadline`, in milliseconds of `performance.now()`. */
type Timed = { deadline: number };
type Pending<Input, Output> = { input: Input; resolve: (output: Output) => void; reject: (error: unknown) => void };

/** Requests in the queue: at 15,000 a second it empties in 0.15 s, and bounds the memory while the database hangs. */
const mostWaiting = 2_000;
/** Requests in a batch: the larger, the less each costs, but the more wait for one statement. */
const mostAtOnce = 128;
/** In ms: how late a request hears that its time is over. */
const watchEvery = 250;

/**
 * Shares round trips: requests that arrive in one turn of the event loop, or while other batches run, go into one batch. No timer is involved,
 * so a lone request does not wait.
 *
 * A request fails with `unavailable` after its deadline, or if the queue is full.
 *
 * @param options.run answers a batch, in its order, or fails it as a whole
 * @param options.confirm checks that a batch is durable before it is answered. The next batch does not wait for it
 * @param options.size requests in one batch, or half of those that wait if they are more: the database then works on one half while this
 * process answers the other
 * @param options.maxInFlight batches at once
 * @param options.isFaultOfOne whether a single request may cause an error: then each request of the batch runs again by itself
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
  const running = new Set<Batch>();
  let inFlight = 0;
  let isScheduled = false;
  let isWatched = false;

  /** @returns a function that answers the requests of the batch */
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
      // Concurrently: the others must not wait behind one that waits for a lock.
      await Promise.all(refuseLate(batch, deadlines.statement).map(async (one) => settle(await run([one]), [one])));
      return async () => undefined;
    }
  }

  async function settle(answerBatch: () => Promise<void>, batch: Batch): Promise<void> {
    await answerBatch().catch((error: unknown) => {
      for (const { reject } of batch) reject(error);
    });
    running.delete(batch);
  }

  async function runNext(): Promise<void> {
    isScheduled = false;
    if (inFlight >= options.maxInFlight) return;
    waiting = refuseLate(waiting, deadlines.statement);
    if (waiting.length === 0) return;
    const batch = waiting.splice(0, Math.min(Math.max(options.size, Math.ceil(waiting.length / 2)), mostAtOnce));
    inFlight++;
    running.add(batch);
    // The rest goes into the next batch.
    schedule();
    options.observe(batch.length);
    const answerBatch = await run(batch);
    inFlight--;
    // The next batch first: the database runs it while this process writes the answers to this one.
    schedule();
    setImmediate(() => settle(answerBatch, batch));
  }

  /** At the end of this turn of the event loop, so that the requests of one turn share a batch. */
  function schedule(): void {
    if (isScheduled || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(runNext);
  }

  /** One timer for all requests: at 30,000 a second, a timer each would cost more than the queue. */
  function watch(): void {
    if (isWatched) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      waiting = refuseLate(waiting, deadlines.statement);
      // The statement itself goes on; a repeat of the request sees its result.
      for (const batch of running) refuseLate(batch, 0);
      if (waiting.length > 0 || running.size > 0) watch();
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

/** Rejects requests whose deadline is less than `needed` milliseconds away. @returns the others */
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
