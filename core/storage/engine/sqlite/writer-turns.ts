import { deadlines } from '../../../domain/deadlines.ts';
import { FairQueue, inOrder } from '../../../domain/fair-queue.ts';

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
export function takeTurns<Connection>(pool: ConnectionPool<Connection>): (lane: string) => ConnectionPool<Connection> {
  const [keys, others] = [new FairQueue({ wait: maxTurnWait }, setTimeout), new FairQueue({ wait: maxTurnWait }, setTimeout)];
  const startNext = inOrder(keys, others, maxInARow);
  let isTaken = false;

  const end = () => {
    isTaken = startNext();
  };

  return (lane) => {
    const queue = lane === 'keys' ? keys : others;
    let used = 0;
    let pending = 0;

    async function acquire(): Promise<Connection> {
      if (isTaken) {
        pending++;
        const result = await queue.wait([lane]);
        pending--;
        if (result !== 'turn') throw new Error('Unable to acquire a connection: other statements are using it.');
      }
      isTaken = true;
      used++;
      try {
        return await pool.acquire().promise;
      } catch (error) {
        used--;
        end();
        throw error;
      }
    }

    return {
      acquire: () => ({ promise: acquire() }),
      release(connection) {
        const isReleased = pool.release(connection);
        used--;
        end();
        return isReleased;
      },
      destroy: () => pool.destroy(),
      numUsed: () => used,
      numFree: () => (isTaken ? 0 : pool.numFree()),
      numPendingAcquires: () => pending,
    };
  };
}
