import { deadlines } from '../../domain/deadlines.ts';
import { Problem, ResultUnknown } from '../../domain/problem.ts';

/** A request whose response is due by `deadline`, in milliseconds of `performance.now()`. */
type Timed = { deadline: number };
type Pending<Input, Output> = { input: Input; resolve: (output: Output) => void; reject: (error: unknown) => void };

/** At 15,000 per second, a full queue empties in 0.15 s. It also bounds the memory if the database hangs. */
const maxWaiting = 2_000;
/** The usual number of requests in a batch, which was fastest with 64 client connections on both databases. */
const batchSize = 32;
/** The maximum number. In larger batches, each request costs less, but more requests wait for one statement. */
const maxBatchSize = 128;
/** Bytes from callers in a batch. 128 of the largest calls would block other writers for as long as thousands of small ones. */
const maxBytes = 1024 * 1024;
/**
 * The maximum number of requests of one share in a batch while other shares are busy, too: the requests for which `getShare` returns the same
 * text. The other shares then wait for only 12 requests of a flood instead of 64: see `npm run bench -- --rules`.
 */
const maxOfShare = 12;
/** In ms: how long a share counts as busy after its last request. */
const busyFor = 1_000;
/** In ms: how late a request may learn that its deadline has passed. */
const watchEvery = 250;

/**
 * Shares round trips: requests that arrive in the same iteration of the event loop, or while other batches are running, go into one batch.
 * There's no timer, so a single request doesn't wait. Shares take turns getting places in a batch.
 *
 * A request fails with `unavailable` if its statement wasn't sent by its deadline, or if the queue is full. Once the statement has been
 * sent, only its result shows what happened. Without a result, a request that changes something fails with {@link ResultUnknown}.
 *
 * @param options.run returns the results of a batch in its order, or fails as a whole. It calls its second parameter, which may throw,
 * before it sends anything that may commit
 * @param options.confirm checks that a batch is durable before its responses are sent. The next batch doesn't wait for it
 * @param options.size the number of requests in one batch, or half of the waiting requests if that's more: the database then works on one
 * half while this process handles the other. Tests use smaller ones than {@link batchSize}
 * @param options.maxInFlight the number of batches at the same time
 * @param options.countBytes returns how much a request adds to its statement. Only necessary if it may be a lot
 * @param options.isSingleRowError whether an error may have been caused by a single request. If so, each request of the batch runs again by
 * itself
 * @param options.isUndone whether an error means that nothing was changed. Omit it for queries
 */
export function batched<Input extends Timed, Output>(options: {
  run: (inputs: Input[], beforeCommit: () => void) => Promise<Output[]>;
  confirm?: (inputs: Input[], outputs: Output[]) => Promise<void>;
  size?: number;
  maxInFlight: number;
  getShare: (input: Input) => string;
  countBytes?: (input: Input) => number;
  isSingleRowError: (error: unknown) => boolean;
  isUndone?: (error: unknown) => boolean;
  observe: (size: number) => void;
}): (input: Input) => Promise<Output> {
  type Request = Pending<Input, Output>;
  type Batch = { requests: readonly Request[]; isSent: boolean };
  const { getShare, countBytes, size: minSize = batchSize } = options;
  const waiting = sharedQueue<Request>(
    maxWaiting,
    ({ input }) => getShare(input),
    ({ input }) => countBytes?.(input) ?? 0,
  );
  const running = new Set<Batch>();
  let inFlight = 0;
  let requestsInFlight = 0;
  let isScheduled = false;
  let isWatched = false;
  let latestShare = '';
  /** Until this time, more than one share is busy. */
  let sharedUntil = 0;

  function begin(requests: readonly Request[]): Batch {
    const batch = { requests, isSent: false };
    running.add(batch);
    return batch;
  }

  /**
   * Called just before a batch is sent. Throws, so that nothing is sent, if a request has less time left than waiting for a lock may take.
   */
  function send(batch: Batch): void {
    const earliest = performance.now() + deadlines.lock;
    if (batch.requests.some(({ input }) => input.deadline < earliest)) throw timedOut();
    batch.isSent = true;
  }

  /** @returns a function that settles the requests of the batch */
  async function run(batch: Batch): Promise<() => Promise<void>> {
    const { requests } = batch;
    const inputs = requests.map(({ input }) => input);
    try {
      const outputs = await options.run(inputs, () => send(batch));
      return async () => {
        await options.confirm?.(inputs, outputs).catch(throwUnconfirmed);
        answer(requests, outputs);
      };
    } catch (error) {
      if (requests.length === 1 || !options.isSingleRowError(error))
        return () => Promise.reject(isKnown(batch, error) ? error : unknown(error));
      running.delete(batch);
      // Run the requests concurrently, because one of them may have to wait for a lock, and the others must not wait, too.
      const again = requests.filter(inTime(deadlines.statement)).map((request) => begin([request]));
      await Promise.all(again.map(async (request) => settle(await run(request), request)));
      return async () => undefined;
    }
  }

  /** Whether it's certain that nothing was changed. For a query, that's always certain. */
  function isKnown({ isSent }: Batch, error: unknown): boolean {
    return !isSent || options.isUndone === undefined || options.isUndone(error);
  }

  async function settle(answerBatch: () => Promise<void>, batch: Batch): Promise<void> {
    await answerBatch().catch((error: unknown) => rejectAll(batch, error));
    running.delete(batch);
  }

  /**
   * Whether a batch can start now. While another batch is running, this one waits until it's just as large, because on PostgreSQL, a
   * statement costs as much as twenty rows. With 64 connections, batches have 31 requests this way, and 23 otherwise.
   */
  function canStart(): boolean {
    return inFlight < options.maxInFlight && waiting.length() * inFlight >= requestsInFlight;
  }

  async function runNext(): Promise<void> {
    isScheduled = false;
    if (inFlight >= options.maxInFlight) return;
    waiting.keep(inTime(deadlines.statement));
    const count = waiting.length();
    if (count === 0) return;
    const size = Math.min(Math.max(minSize, Math.ceil(count / 2)), maxBatchSize);
    const batch = begin(waiting.take(size, maxBytes, performance.now() < sharedUntil ? maxOfShare : size));
    inFlight++;
    requestsInFlight += batch.requests.length;
    // The rest goes into the next batch.
    schedule();
    options.observe(batch.requests.length);
    const answerBatch = await run(batch);
    inFlight--;
    requestsInFlight -= batch.requests.length;
    // Start the next batch first, so that the database runs it while this process writes the responses to this one.
    schedule();
    setImmediate(() => settle(answerBatch, batch));
  }

  /** Schedules a batch for the end of this iteration of the event loop, so that the requests of one iteration share it. */
  function schedule(): void {
    if (isScheduled || waiting.length() === 0 || !canStart()) return;
    isScheduled = true;
    setImmediate(runNext);
  }

  /** Watches all requests with one timer. At 30,000 per second, separate timers would cost more than the queue. */
  function watch(): void {
    if (isWatched) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      waiting.keep(inTime(deadlines.statement));
      for (const batch of running) watchOne(batch);
      // Don't wait for the running batch, because it may be waiting for a lock.
      void runNext();
      if (waiting.length() > 0 || running.size > 0) watch();
    }, watchEvery).unref();
  }

  /** Fails requests whose deadline has passed. A statement that was sent continues, and a repeat of the request sees its result. */
  function watchOne(batch: Batch): void {
    const now = performance.now();
    const late = batch.requests.filter(({ input }) => input.deadline <= now);
    if (late.length === 0) return;
    if (options.isUndone && !batch.isSent) rejectAll(batch, timedOut());
    else for (const { reject } of late) reject(options.isUndone ? unknown(timedOut()) : timedOut());
  }

  /** Notes the share of a request. If the previous request was from a different share, several shares are busy. */
  function noteShare(share: string): void {
    if (share === latestShare) return;
    if (latestShare !== '') sharedUntil = performance.now() + busyFor;
    latestShare = share;
  }

  return (input) =>
    new Promise((resolve, reject) => {
      noteShare(getShare(input));
      waiting.add({ input, resolve, reject })?.reject(tooMany());
      schedule();
      watch();
    });
}

function tooMany(): Problem {
  return new Problem('unavailable', 'Too many requests are waiting for the database. Try again shortly.', { retryAfter: 2 });
}

function timedOut(): Problem {
  return new Problem('unavailable', "The database didn't respond in time. Try again shortly, with the same request ID.", {
    retryAfter: 2,
  });
}

function unknown(cause: unknown): ResultUnknown {
  return cause instanceof ResultUnknown ? cause : new ResultUnknown(cause);
}

/** Turns an error into an unknown result, because it may be the check that failed, and not the change. */
function throwUnconfirmed(error: unknown): never {
  throw error instanceof Problem ? error : unknown(error);
}

/** Returns a function that rejects a request whose deadline is less than `needed` milliseconds away. */
function inTime(needed: number): (request: Pending<Timed, never>) => boolean {
  const earliest = performance.now() + needed;
  return ({ input, reject }) => {
    if (input.deadline > earliest) return true;
    reject(timedOut());
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

/** Each key or address has a share, so that a flood delays only itself. If the queue is full, the share with the most items loses one. */
function sharedQueue<Item>(room: number, getShare: (item: Item) => string, countBytes: (item: Item) => number) {
  let waiting: Item[] = [];
  /**
   * The number of items in each share. Counted only while the queue is full, because counting all the time would cost each request more
   * than the queue itself.
   */
  let counts: Map<string, number> | undefined;

  /**
   * Makes room for an item of `share`: removes the newest item of the share with the most items, unless `share` would then have as many.
   */
  function makeRoom(share: string): Item | undefined {
    counts ??= countByShare(waiting, getShare);
    // Every share has only one item, so there's no longest one.
    if (counts.size >= room) return undefined;
    const [longest, max] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
    if ((counts.get(share) ?? 0) + 1 >= max) return undefined;
    counts.set(longest, max - 1);
    const newest = waiting.findLastIndex((item) => getShare(item) === longest);
    return waiting.splice(newest, 1)[0];
  }

  /** Returns how many items can be taken from the start without exceeding `count` and `bytes`. The first item is always taken. */
  function fitting(items: readonly Item[], count: number, bytes: number): number {
    const max = Math.min(count, items.length);
    let sum = 0;
    for (const [index, item] of items.slice(0, max).entries()) {
      sum += countBytes(item);
      if (sum > bytes && index > 0) return index;
    }
    return max;
  }

  return {
    length: () => waiting.length,
    /** Adds an item. @returns the item that doesn't fit, if any: this one, or the newest of the share with the most items */
    add(item: Item): Item | undefined {
      let dropped: Item | undefined;
      if (waiting.length >= room) {
        const share = getShare(item);
        dropped = makeRoom(share);
        if (dropped === undefined) return item;
        counts?.set(share, (counts.get(share) ?? 0) + 1);
      }
      waiting.push(item);
      return dropped;
    },
    /**
     * Takes up to `count` items: the first of each share, then the second of each, and so on.
     *
     * @param bytes stops before an item that would exceed this sum, unless it's the first
     * @param perShare the maximum number of items of one share
     */
    take(count: number, bytes: number, perShare: number): Item[] {
      counts = undefined;
      let max = count;
      if (fitting(waiting, Math.min(count, perShare), bytes) < waiting.length) {
        const rounds = inRounds(waiting, getShare);
        waiting = rounds.flat();
        max = Math.min(
          count,
          rounds.slice(0, perShare).reduce((sum, { length }) => sum + length, 0),
        );
      }
      return waiting.splice(0, fitting(waiting, max, bytes));
    },
    keep(isWanted: (item: Item) => boolean): void {
      counts = undefined;
      waiting = waiting.filter(isWanted);
    },
  };
}

/** Returns the first item of each share, then the second of each, and so on. */
function inRounds<Item>(items: readonly Item[], getShare: (item: Item) => string): Item[][] {
  const counts = new Map<string, number>();
  const rounds: Item[][] = [];
  for (const item of items) {
    const share = getShare(item);
    const nth = counts.get(share) ?? 0;
    counts.set(share, nth + 1);
    const round = rounds[nth];
    if (round) round.push(item);
    else rounds.push([item]);
  }
  return rounds;
}

function countByShare<Item>(items: readonly Item[], getShare: (item: Item) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(getShare(item), (counts.get(getShare(item)) ?? 0) + 1);
  return counts;
}
