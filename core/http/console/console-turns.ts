import { setTimeout as delay } from 'node:timers/promises';
import { FairQueue, type Turn } from '../../domain/fair-queue.ts';
import { Problem } from '../../domain/problem.ts';

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
