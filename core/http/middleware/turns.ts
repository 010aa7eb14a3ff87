import { setTimeout as delay } from 'node:timers/promises';
import { toNarrowestNetwork } from '#contract/text/networks.ts';
import { FairQueue, type Turn } from '../../domain/fair-queue.ts';
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

/** Both times are in ms. After `search`, a search returns what it has found so far. A request waits at most `wait` for its turn. */
type TurnLimits = { search: number; wait: number; atOnce: number; waitingOfUser: number };
export const turnLimits: TurnLimits = { search: 1_000, wait: 5_000, atOnce: 1, waitingOfUser: 256 };

/**
 * Shares the database among the console's users, who take turns: each has one at a time, across all of the user's sessions. So if one user's
 * screen polls, or a script requests a slow list many times, other users wait for at most one of those statements.
 */
export class ConsoleTurns {
  readonly #queue: FairQueue;
  readonly #active = new Set<string>();
  /** The latest search of each kind in each session. */
  readonly #searches = new Map<string, object>();
  readonly #limits: TurnLimits;

  constructor(limits = turnLimits) {
    this.#limits = limits;
    this.#queue = new FairQueue({ inShare: limits.waitingOfUser, wait: limits.wait }, setTimeout);
  }

  /**
   * @param request.search the kind of search. The session's next search of that kind ends this one, whose result is then no longer needed
   * @param request.isGone whether the client no longer waits for the response
   * @returns undefined if the client is gone
   * @throws Problem `too-many-requests` or `unavailable`
   */
  async run<Result>(
    request: { user: string; session: string; search: string | null; isGone: () => boolean },
    work: (turn: Turn, hasWaited: boolean) => Promise<Result>,
  ): Promise<Result | undefined> {
    const { user, session, isGone } = request;
    const kind = request.search === null ? null : `${session} ${request.search}`;
    const search = {};
    if (kind !== null) this.#searches.set(kind, search);
    const deadline = performance.now() + this.#limits.search;
    const hasWaited = this.#active.has(user) || this.#active.size >= this.#limits.atOnce;
    let hasTurn = false;
    try {
      const result = await this.#wait(user, this.#limits.wait);
      hasTurn = result === 'turn';
      if (result === 'full')
        throw new Problem('too-many-requests', 'Too many of your requests are waiting. Try again in 1 second.', { retryAfter: 1 });
      if (!hasTurn) throw new Problem('unavailable', 'The server is busy with other requests.', { retryAfter: 2 });
      if (isGone()) return undefined;
      const yieldTurn = async () => {
        const left = deadline - performance.now();
        if (left <= 0 || isGone() || (kind !== null && this.#searches.get(kind) !== search)) return false;
        if (this.#queue.length === 0) return true;
        const next = this.#wait(user, left);
        this.#end(user);
        hasTurn = (await next) === 'turn';
        return hasTurn;
      };
      const rest = async (ms: number) => {
        this.#end(user);
        hasTurn = false;
        // It isn't refused a turn, because it has already changed something.
        while (!hasTurn) {
          await delay(ms);
          hasTurn = (await this.#wait(user, this.#limits.wait)) === 'turn';
        }
      };
      return await work({ yieldTurn, rest }, hasWaited);
    } finally {
      if (hasTurn) this.#end(user);
      if (kind !== null && this.#searches.get(kind) === search) this.#searches.delete(kind);
    }
  }

  #wait(user: string, ms: number): ReturnType<FairQueue['wait']> {
    const waiting = this.#queue.wait([user], ms);
    this.#startNext();
    return waiting;
  }

  #end(user: string): void {
    this.#active.delete(user);
    this.#queue.putLast([user]);
    this.#startNext();
  }

  #startNext(): void {
    while (this.#active.size < this.#limits.atOnce) {
      const user = this.#queue.startNext((name) => !this.#active.has(name));
      if (user === null) return;
      this.#active.add(user);
    }
  }
}
