// Hand-written because p-map rejects at the first error and loses the responses of requests in flight. It can't limit the rate, either.
import type { Timing } from '../client/timing.ts';

/** `rate` is in calls per second. */
export type Pace = { concurrency: number; rate: number | undefined };

type Schedule = { pace: Pace; stop: AbortController; timing: Timing };

/**
 * Runs `work` for each item, several at a time, until all are done, one of them or `items` fails, or `stop` aborts. Work in flight still
 * finishes.
 *
 * @throws the first error, after all work in flight has finished
 */
export async function runPool<Item>(
  items: AsyncIterable<Item>,
  { pace: { concurrency, rate }, stop, timing }: Schedule,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const remaining = items[Symbol.asyncIterator]();
  const waitForSlot = rate === undefined ? async () => undefined : rateLimiter(rate, stop.signal, timing);
  const errors: unknown[] = [];
  const worker = async () => {
    while (!stop.signal.aborted) {
      const next = await remaining.next();
      if (next.done) return;
      await waitForSlot();
      if (stop.signal.aborted) return;
      await work(next.value);
    }
  };
  const workers = Array.from({ length: concurrency }, () =>
    worker().catch((error: unknown) => {
      // Only the first error counts, since later ones may be caused by this abort.
      errors.push(error);
      stop.abort();
    }),
  );
  await Promise.all(workers);
  await remaining.return?.();
  if (errors.length > 0) throw errors[0];
}

/** @returns a function that resolves when the next call may start */
function rateLimiter(rate: number, signal: AbortSignal, timing: Timing): () => Promise<void> {
  let next = timing.elapsed();
  return async () => {
    const now = timing.elapsed();
    const start = Math.max(now, next);
    next = start + 1000 / rate;
    if (start > now) await timing.wait(start - now, signal);
  };
}
