import type { Turn } from '../../domain/calls/call-list.ts';
import { Problem } from '../../domain/problem.ts';

/** Both times are in ms. After `search`, a search returns what it has found so far. A request waits at most `wait` for its turn. */
type TurnLimits = { search: number; wait: number; atOnce: number; waitingOfUser: number };
export const turnLimits: TurnLimits = { search: 1_000, wait: 5_000, atOnce: 1, waitingOfUser: 256 };

type Waiting = { start: () => void };

/**
 * Shares the database among the lists and searches of the console's users. Users take turns, and each has one turn at a time, across all of
 * the user's sessions. So if one user's screen polls, or a script requests a slow list many times, other users wait for at most one of
 * those statements. A user's changes have separate turns. Signing in doesn't need a turn.
 */
export class ConsoleTurns {
  /** The waiting requests by user, in the order of the users' turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #active = new Set<string>();
  /** The latest search of each kind in each session. */
  readonly #searches = new Map<string, object>();
  readonly #limits: TurnLimits;

  constructor(limits = turnLimits) {
    this.#limits = limits;
  }

  /**
   * Runs the work when its turn comes.
   *
   * @param request.search the kind of search. The session's next search of that kind ends this one, whose result is then no longer needed
   * @param request.isGone whether the client no longer waits for the response
   * @param work is told whether it had to wait
   * @throws Problem `too-many-requests` or `unavailable`
   */
  async run(
    request: { user: string; session: string; search: string | null; isGone: () => boolean },
    work: (turn: Turn, hasWaited: boolean) => Promise<void>,
  ): Promise<void> {
    const { user, session, isGone } = request;
    if ((this.#waiting.get(user)?.length ?? 0) >= this.#limits.waitingOfUser)
      throw new Problem('too-many-requests', 'Too many of your requests are waiting.', { retryAfter: 1 });
    const kind = request.search === null ? null : `${session} ${request.search}`;
    const search = {};
    if (kind !== null) this.#searches.set(kind, search);
    const deadline = performance.now() + this.#limits.search;
    const taking = this.#take(user, this.#limits.wait);
    const hasWaited = this.#waiting.has(user);
    let hasTurn = await taking;
    try {
      if (!hasTurn) throw new Problem('unavailable', 'The server is busy with other requests.', { retryAfter: 2 });
      if (isGone()) return;
      const yieldTurn = async () => {
        const left = deadline - performance.now();
        if (left <= 0 || isGone() || (kind !== null && this.#searches.get(kind) !== search)) return false;
        if (this.#waiting.size === 0) return true;
        this.#end(user);
        hasTurn = await this.#take(user, left);
        return hasTurn;
      };
      await work({ yieldTurn }, hasWaited);
    } finally {
      if (hasTurn) this.#end(user);
      if (kind !== null && this.#searches.get(kind) === search) this.#searches.delete(kind);
    }
  }

  /** Waits for a turn. @returns false if it doesn't come within `ms` */
  #take(user: string, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const queue = this.#waiting.get(user) ?? [];
      const timer = setTimeout(() => {
        this.#remove(user, waiting);
        resolve(false);
      }, ms);
      const waiting: Waiting = {
        start: () => {
          clearTimeout(timer);
          resolve(true);
        },
      };
      this.#waiting.set(user, [...queue, waiting]);
      this.#startNext();
    });
  }

  #end(user: string): void {
    this.#active.delete(user);
    this.#putLast(user);
    this.#startNext();
  }

  #startNext(): void {
    for (const [user, [next]] of this.#waiting) {
      if (this.#active.size >= this.#limits.atOnce) return;
      if (this.#active.has(user) || !next) continue;
      this.#remove(user, next);
      this.#active.add(user);
      next.start();
    }
  }

  #remove(user: string, waiting: Waiting): void {
    const rest = this.#waiting.get(user)?.filter((each) => each !== waiting) ?? [];
    if (rest.length > 0) this.#waiting.set(user, rest);
    else this.#waiting.delete(user);
  }

  /** Moves a user behind all others. */
  #putLast(user: string): void {
    const queue = this.#waiting.get(user);
    if (!queue) return;
    this.#waiting.delete(user);
    this.#waiting.set(user, queue);
  }
}
