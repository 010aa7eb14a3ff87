import { deadlines } from '../../../domain/deadlines.ts';

/** The part of a connection pool that knex uses. */
type ConnectionPool<Connection> = {
  acquire(): { promise: Promise<Connection> };
  release(connection: Connection): boolean;
  destroy(): Promise<void>;
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
};

/**
 * How many statements with keys go first while others wait. Then one of the others gets a turn, because otherwise a flood of requests with
 * keys would keep them out.
 */
const maxInARow = 8;
/** In ms: how long a statement may wait for a turn, so that there's still time to run it within `deadlines.answer`. */
export const maxTurnWait = deadlines.answer - deadlines.statement;

/**
 * Shares a pool's only connection between lanes. Keys go first, and the others take turns. Otherwise, a key's statement would wait for
 * everything that the console, sign-ins and the dialer are about to write.
 *
 * @returns a function that creates the pool of a lane
 */
export function takeTurns<Connection>(pool: ConnectionPool<Connection>): (lane: 'keys' | 'other') => ConnectionPool<Connection> {
  type Queue = (() => void)[];
  const keys: Queue = [];
  let others: Queue[] = [];
  let isTaken = false;
  let inARow = 0;

  function startNext(): void {
    const other = others.find(({ length }) => length > 0);
    const next = keys.length > 0 && (other === undefined || inARow < maxInARow) ? keys : other;
    isTaken = next !== undefined;
    inARow = next === keys ? inARow + 1 : 0;
    if (next !== undefined && next !== keys) others = [...others.filter((queue) => queue !== next), next];
    next?.shift()?.();
  }

  function turnIn(queue: Queue): Promise<void> {
    if (!isTaken) {
      isTaken = true;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const start = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        queue.splice(queue.indexOf(start), 1);
        reject(new Error('Unable to acquire a connection: other statements are using it.'));
      }, maxTurnWait);
      queue.push(start);
    });
  }

  return (lane) => {
    const queue = lane === 'keys' ? keys : [];
    if (queue !== keys) others.push(queue);
    let used = 0;

    async function acquire(): Promise<Connection> {
      await turnIn(queue);
      used++;
      try {
        return await pool.acquire().promise;
      } catch (error) {
        used--;
        startNext();
        throw error;
      }
    }

    return {
      acquire: () => ({ promise: acquire() }),
      release(connection) {
        const isReleased = pool.release(connection);
        used--;
        startNext();
        return isReleased;
      },
      destroy: () => pool.destroy(),
      numUsed: () => used,
      numFree: () => (isTaken ? 0 : pool.numFree()),
      numPendingAcquires: () => queue.length,
    };
  };
}
