import { statSync } from 'node:fs';
import knex, { type Knex } from 'knex';
import type { Database as Connection } from 'sqlite3';
import { deadlines } from '../../../domain/deadlines.ts';
import { FairQueue, inOrder } from '../../../domain/fair-queue.ts';
import { type Lane, type Mode, type OpenedDatabase, quiet, type Statement, type Value } from '../database.ts';
import { toStatement } from '../sql-file.ts';
import { markBroken, runPrepared, SqliteClient, SqliteListClient, SqliteWriterClient, toText } from './sqlite-connection.ts';
import { fileGuard, prepareFile } from './sqlite-file.ts';

/** The number of concurrent reading connections. Each statement occupies a libuv thread; main.ts makes sure that there are enough. */
const readers = { keys: 2, 'read back': 1, console: 2, lists: 2, 'sign-in': 1, background: 1 };

/**
 * Opens one writing connection, which the lanes use in turn, and separate reading connections for each lane, all on one file.
 *
 * @param ifMissing `make` creates a file that only its owner can read
 * @throws Problem `not-found` or `unavailable`
 */
export function openSqlite(filename: string, ifMissing: 'make' | 'refuse'): OpenedDatabase {
  prepareFile(filename, ifMissing);
  const connection = { filename, guard: fileGuard(filename) };
  const options = { useNullAsDefault: true, log: quiet, compileSqlOnError: false };
  const pools = new Map<string, [Knex]>();
  const open = (client: typeof SqliteClient, connections: number) =>
    knex({
      ...options,
      client,
      connection,
      // This leaves enough time within `deadlines.answer` to run the statement after waiting for a connection.
      acquireConnectionTimeout: deadlines.answer - deadlines.statement,
      // One connection stays open, so that a restore sees that a core is using the file. `validate` runs each time a connection is taken,
      // once per batch.
      pool: { min: 1, max: connections, validate: () => doesNotThrow(connection.guard.check) },
    });
  const writer = open(SqliteWriterClient, 1);
  const turns = takeTurns<Connection>(writer.client.pool);

  function pool(name: string, made: Knex): Knex {
    pools.set(name, [made]);
    return made;
  }
  function lane(name: Exclude<keyof typeof readers, 'read back'>, readBack?: Knex): Lane {
    const read = pool(`${name}-read`, open(name === 'lists' ? SqliteListClient : SqliteClient, readers[name]));
    const connectionPool = turns(name);
    const write = pool(`${name}-write`, knex({ ...options, client: SqliteWriterClient, connectionPool }));
    return createLane(filename, { read, write, 'read back': readBack ?? read });
  }

  const console = lane('console');
  return {
    ...console,
    lanes: {
      console,
      keys: lane('keys', pool('read-back', open(SqliteClient, readers['read back']))),
      lists: lane('lists'),
      'sign-in': lane('sign-in'),
      background: lane('background'),
    },
    pools,
    async close() {
      // First the writer, which waits for the statements in progress. When knex destroys a client that was given its pool, it forgets the
      // pool immediately, so the client's last statement could no longer return its connection, and the writer would wait forever.
      await writer.destroy();
      await Promise.all(Array.from(pools.values(), ([each]) => each.destroy()));
    },
  };
}

const noShards: readonly Lane[] = [];

function createLane(filename: string, pools: Record<'read' | 'read back' | 'write', Knex>): Lane {
  const { read, write } = pools;
  return {
    kind: 'sqlite',
    hasOnlyCalls: false,
    shards: () => noShards,
    useShards: () => undefined,
    read,
    write,
    batchSize: 32,
    maxInFlight: 1,
    async query<Found extends object>(sql: string, bindings: readonly Value[] = [], on = read): Promise<Found[]> {
      const rows: unknown = await on.raw(sql, bindings);
      return rows as Found[];
    },
    prepare<Found extends object>(sql: string, mode: Mode): Statement<Found> {
      const text = toText(toStatement(sql, 'sqlite'));
      const pool = mode === 'end' ? write : pools[mode];
      return (rows, beforeCommit, transaction) => runPrepared(transaction ?? pool, text, JSON.stringify(rows), beforeCommit);
    },
    async discardWriter(reason) {
      const connection: Connection = await write.client.acquireConnection();
      markBroken(connection, reason);
      write.client.releaseConnection(connection);
      // Close the broken connection immediately, because it may hold the file's lock. The pool would close it only when it's next asked for
      // a connection.
      await write.raw('SELECT 1');
    },
    async checkWritable() {
      // Write a page, because that needs the lock, disk space and a successful fsync.
      await write.transaction((trx) => trx.raw('PRAGMA user_version = 0'));
    },
    async lockMigrations() {
      // Nothing to do: BEGIN IMMEDIATE has locked the file.
    },
    async awaitWriters() {
      // SQLite has only one writer at a time, so all writers that haven't seen the caller's change have already ended.
      return true;
    },
    async awaitNodes() {
      // Nothing to do: there's only one copy.
    },
    size: async () => ({ database: sizeInBytes(filename), wal: sizeInBytes(`${filename}-wal`) }),
    risks: async () => [],
  };
}

function sizeInBytes(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function doesNotThrow(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

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
function takeTurns<Connection>(pool: ConnectionPool<Connection>): (lane: string) => ConnectionPool<Connection> {
  const [keys, others] = [new FairQueue({ wait: maxTurnWait }, setTimeout), new FairQueue({ wait: maxTurnWait }, setTimeout)];
  const startNext = inOrder(keys, others, maxInARow);
  let isTaken = false;
  let waiting = 0;

  const end = () => {
    isTaken = waiting > 0 && startNext();
  };

  return (lane) => {
    const queue = lane === 'keys' ? keys : others;
    let used = 0;
    let pending = 0;

    async function acquire(): Promise<Connection> {
      if (isTaken) {
        waiting++;
        pending++;
        const result = await queue.wait([lane]);
        waiting--;
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
