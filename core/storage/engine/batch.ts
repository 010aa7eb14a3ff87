import { deadlines } from '../../domain/deadlines.ts';
import { Problem, ResultUnknown } from '../../domain/problem.ts';
import { sharedQueue } from './shared-queue.ts';

export type BatchObserver = (size: number) => void;

/** A request must be answered by `deadline`, in milliseconds of `performance.now()`. */
type Timed = { deadline: number };
type Pending<Input, Output> = { input: Input; resolve: (output: Output) => void; reject: (error: unknown) => void };

/** Requests in the queue: at 15,000 a second it empties in 0.15 s, and bounds the memory while the database hangs. */
const mostWaiting = 2_000;
/** Requests in a batch: the larger, the less each costs, but the more wait for one statement. */
const mostAtOnce = 128;
/** Bytes of what callers sent in a batch: 128 of the largest calls would keep everyone else from writing for as long as thousands of small ones. */
const mostBytes = 1024 * 1024;
/** In ms: how late a request hears that its time is over. */
const watchEvery = 250;

/**
 * Shares round trips: requests that arrive in one turn of the event loop, or while other batches run, go into one batch. No timer is involved,
 * so a lone request does not wait. Those that wait get their places in a batch in turn, by `shareOf`.
 *
 * A request fails with `unavailable` if its statement was not sent by its deadline, or the queue is full. After that, only the statement's
 * result can tell what happened: without one, a request that changes something fails with {@link ResultUnknown}.
 *
 * @param options.run answers a batch, in its order, or fails it as a whole. Calls its second parameter, which may throw, before it sends what
 * may commit
 * @param options.confirm checks that a batch is durable before it is answered. The next batch does not wait for it
 * @param options.size requests in one batch, or half of those that wait if they are more: the database then works on one half while this
 * process answers the other
 * @param options.maxInFlight batches at once
 * @param options.bytesOf how much a request adds to its statement, if it may be much
 * @param options.isFaultOfOne whether a single request may cause an error: then each request of the batch runs again by itself
 * @param options.isUndone whether an error of a change says that nothing was changed; left out, where nothing changes anything
 */
export function batched<Input extends Timed, Output>(options: {
  run: (inputs: Input[], beforeCommit: () => void) => Promise<Output[]>;
  confirm?: (inputs: Input[], outputs: Output[]) => Promise<void>;
  size: number;
  maxInFlight: number;
  shareOf: (input: Input) => string;
  bytesOf?: (input: Input) => number;
  isFaultOfOne: (error: unknown) => boolean;
  isUndone?: (error: unknown) => boolean;
  observe: BatchObserver;
}): (input: Input) => Promise<Output> {
  type Request = Pending<Input, Output>;
  type Batch = { requests: readonly Request[]; isSent: boolean; isRefused: boolean };
  const { shareOf, bytesOf = () => 0 } = options;
  const waiting = sharedQueue<Request>(
    mostWaiting,
    ({ input }) => shareOf(input),
    ({ input }) => bytesOf(input),
  );
  const running = new Set<Batch>();
  let inFlight = 0;
  let isScheduled = false;
  let isWatched = false;

  function begin(requests: readonly Request[]): Batch {
    const batch = { requests, isSent: false, isRefused: false };
    running.add(batch);
    return batch;
  }

  /** Nothing of a batch may be sent after one of its requests was refused, or with less time left than a lock may take. */
  function send(batch: Batch): void {
    const earliest = performance.now() + deadlines.lock;
    if (batch.isRefused || batch.requests.some(({ input }) => input.deadline < earliest)) throw tooLate();
    batch.isSent = true;
  }

  /** @returns a function that answers the requests of the batch */
  async function run(batch: Batch): Promise<() => Promise<void>> {
    const { requests } = batch;
    const inputs = requests.map(({ input }) => input);
    try {
      const outputs = await options.run(inputs, () => send(batch));
      return async () => {
        await options.confirm?.(inputs, outputs).catch(asUnknown);
        answer(requests, outputs);
      };
    } catch (error) {
      if (requests.length === 1 || !options.isFaultOfOne(error))
        return () => Promise.reject(isKnown(batch, error) ? error : unknown(error));
      running.delete(batch);
      // Concurrently: the others must not wait behind one that waits for a lock.
      const again = requests.filter(inTime(deadlines.statement)).map((request) => begin([request]));
      await Promise.all(again.map(async (one) => settle(await run(one), one)));
      return async () => undefined;
    }
  }

  /** Whether nothing was changed, or nothing can be. */
  function isKnown({ isSent }: Batch, error: unknown): boolean {
    return !isSent || options.isUndone === undefined || options.isUndone(error);
  }

  async function settle(answerBatch: () => Promise<void>, batch: Batch): Promise<void> {
    await answerBatch().catch((error: unknown) => rejectAll(batch, error));
    running.delete(batch);
  }

  async function runNext(): Promise<void> {
    isScheduled = false;
    if (inFlight >= options.maxInFlight) return;
    waiting.keep(inTime(deadlines.statement));
    const count = waiting.length();
    if (count === 0) return;
    const batch = begin(waiting.take(Math.min(Math.max(options.size, Math.ceil(count / 2)), mostAtOnce), mostBytes));
    inFlight++;
    // The rest goes into the next batch.
    schedule();
    options.observe(batch.requests.length);
    const answerBatch = await run(batch);
    inFlight--;
    // The next batch first: the database runs it while this process writes the answers to this one.
    schedule();
    setImmediate(() => settle(answerBatch, batch));
  }

  /** At the end of this turn of the event loop, so that the requests of one turn share a batch. */
  function schedule(): void {
    if (isScheduled || waiting.length() === 0) return;
    isScheduled = true;
    setImmediate(runNext);
  }

  /** One timer for all requests: at 30,000 a second, a timer each would cost more than the queue. */
  function watch(): void {
    if (isWatched) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      waiting.keep(inTime(deadlines.statement));
      for (const batch of running) watchOne(batch);
      if (waiting.length() > 0 || running.size > 0) watch();
    }, watchEvery).unref();
  }

  /** A statement that was sent goes on, and a repeat of the request sees its result. */
  function watchOne(batch: Batch): void {
    const now = performance.now();
    const late = batch.requests.filter(({ input }) => input.deadline <= now);
    if (late.length === 0) return;
    if (options.isUndone && !batch.isSent) {
      batch.isRefused = true;
      rejectAll(batch, tooLate());
    } else for (const { reject } of late) reject(options.isUndone ? unknown(tooLate()) : tooLate());
  }

  return (input) =>
    new Promise((resolve, reject) => {
      waiting.add({ input, resolve, reject })?.reject(tooMany());
      if (inFlight < options.maxInFlight) schedule();
      watch();
    });
}

function tooMany(): Problem {
  return new Problem('unavailable', 'Too many requests are waiting for the database. Try again shortly.', { retryAfter: 2 });
}

function tooLate(): Problem {
  return new Problem('unavailable', "The database didn't respond in time. Try again shortly, with the same request ID.", {
    retryAfter: 2,
  });
}

function unknown(cause: unknown): ResultUnknown {
  return cause instanceof ResultUnknown ? cause : new ResultUnknown(cause);
}

/** What is wrong may be the look, and not what it was for. */
function asUnknown(error: unknown): never {
  throw error instanceof Problem ? error : unknown(error);
}

/** @returns a function that rejects a request whose deadline is less than `needed` milliseconds away */
function inTime(needed: number): (request: Pending<Timed, never>) => boolean {
  const earliest = performance.now() + needed;
  return ({ input, reject }) => {
    if (input.deadline > earliest) return true;
    reject(tooLate());
    return false;
  };
}

function rejectAll({ requests }: { requests: readonly Pick<Pending<never, never>, 'reject'>[] }, error: unknown): void {
  for (const { reject } of requests) reject(error);
}

function answer<Output>(requests: readonly Pending<unknown, Output>[], outputs: readonly Output[]): void {
  requests.forEach(({ resolve, reject }, index) => {
    const output = outputs[index];
    if (output === undefined) reject(new Error('A batch left a request unanswered.'));
    else resolve(output);
  });
}
