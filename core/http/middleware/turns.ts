import { toNarrowestNetwork } from '#contract/text/networks.ts';
import { FairQueue } from '../../domain/fair-queue.ts';
import { Problem } from '../../domain/problem.ts';
import type { HttpDeps, Middleware } from './context.ts';

// Requests that wait for a later iteration of the event loop, because a flood of them must not fill an iteration. All other requests would
// have to wait until such an iteration ends, once for each of their statements, and a sign-in has more than ten.

/** Together, a thousand bodies take up to 64 MB. A request with a key must still have time for a statement afterwards: see `deadlines`. */
const bodies = { waiting: () => 1_000, wait: 2_000 };

/** Starts at most this many of those who wait in each iteration of the event loop. */
function inIterations(atMost: number, queue: FairQueue): (share: string) => ReturnType<FairQueue['wait']> {
  let isScheduled = false;
  const schedule = () => {
    if (isScheduled || queue.length === 0) return;
    isScheduled = true;
    setImmediate(start);
  };
  const start = () => {
    for (let started = 0; started < atMost && queue.startNext() !== null; ) started++;
    isScheduled = false;
    schedule();
  };
  return (share) => {
    const waiting = queue.wait([share]);
    schedule();
    return waiting;
  };
}

const waitToParse = inIterations(1, new FairQueue(bodies, (run, ms) => setTimeout(run, ms)));

/**
 * Each iteration parses one large body, because one with thousands of unknown fields takes up to 10 ms. Small bodies don't wait, so a flood of
 * large ones doesn't delay them.
 *
 * @param share the key or user that sent the body. Each delays only itself
 * @throws Problem `unavailable`
 */
export async function waitForParseTurn(share: string): Promise<void> {
  if ((await waitToParse(share)) === 'turn') return;
  throw new Problem('unavailable', 'Too many large requests are waiting. Try again shortly.', { retryAfter: 2 });
}

const waitInNetwork = inIterations(4, new FairQueue({}, setTimeout));

/**
 * Hundreds of connections whose requests are quickly refused each send the next one right after the response. Networks take turns, so that
 * those of one delay only each other.
 */
export async function waitForNetworkTurn(address: string): Promise<void> {
  await waitInNetwork(toNarrowestNetwork(address));
}

export function networksInTurn({ getClientAddress }: Pick<HttpDeps, 'getClientAddress'>): Middleware {
  return async (ctx, next) => {
    await waitForNetworkTurn(getClientAddress(ctx));
    await next();
  };
}
