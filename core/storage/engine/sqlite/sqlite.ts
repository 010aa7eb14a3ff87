import { statSync } from 'node:fs';
import { promisify } from 'node:util';
import knex, { type Knex } from 'knex';
import Transaction from 'knex/lib/dialects/sqlite3/execution/sqlite-transaction.js';
import Client from 'knex/lib/dialects/sqlite3/index.js';
import sqlite3, { type Database as Connection, type Statement as PreparedStatement, type RunResult } from 'sqlite3';
import { deadlines } from '../../../domain/deadlines.ts';
import { FairQueue, inOrder } from '../../../domain/fair-queue.ts';
import { errorCode } from '../../../domain/problem.ts';
import { type Changed, type Lane, type Mode, type OpenedDatabase, quiet, type Statement, toStatement, type Value } from '../database.ts';
import { isDataError, TookTooLong } from '../errors.ts';
import { fileGuard, makeFile, requireFile } from './sqlite-file.ts';

/** The number of concurrent reading connections. Each statement occupies a libuv thread; main.ts makes sure that there are enough. */
const readers = { keys: 2, 'read back': 1, console: 2, lists: 2, 'sign-in': 1, background: 1 };

/** Opens one writing connection, which the lanes use in turn, and reading connections for each. @throws Problem `not-found` or `unavailable` */
export function openSqlite(filename: string, ifMissing: 'make' | 'refuse'): OpenedDatabase {
  if (ifMissing === 'make') makeFile(filename);
  else requireFile(filename);
  const connection = { filename, guard: fileGuard(filename) };
  // An error mustn't contain parameters, such as phone numbers, because it may be logged.
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
    maxInFlight: 1,
    async query<Found extends object>(sql: string, bindings: readonly Value[] = [], on = read): Promise<Found[]> {
      const rows: unknown = await on.raw(sql, bindings);
      return rows as Found[];
    },
    prepare<Found extends object>(sql: string, mode: Mode): Statement<Found> {
      const statement = toStatement(sql, 'sqlite');
      const text = { sql: statement, returnsRows: /^SELECT\b|\bRETURNING\b/.test(statement) };
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

/** How many statements with keys go first while others wait. Otherwise, a flood of requests with keys would keep the others out. */
const maxInARow = 8;
/** In ms: how long a statement may wait for a turn, so that there's still time to run it within `deadlines.answer`. */
export const maxTurnWait = deadlines.answer - deadlines.statement;

/** Shares a pool's only connection between lanes. Keys go first, and the others take turns. @returns a function that creates a lane's pool */
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

/**
 * `synchronous=FULL`: an acknowledged commit survives a power failure, even in WAL mode. Checkpoints at 4,000 pages keep the WAL at about
 * 16 MB. It may become larger during a long read, and `journal_size_limit` then truncates it to 64 MB. With checkpoints at 1,000 pages, one
 * batch in thirty waited for a checkpoint, and on a busy machine, the slowest 1% took 58 ms instead of 36.
 */
const pragmas = [
  `PRAGMA busy_timeout = ${deadlines.lock}`,
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA foreign_keys = ON',
  // Overwrites erased data with zeros. This doesn't slow down placing or cancelling calls (measured).
  'PRAGMA secure_delete = ON',
  'PRAGMA wal_autocheckpoint = 4000',
  'PRAGMA journal_size_limit = 67108864',
];

/** The prepared statements of each connection, including those that are still being prepared. */
const statements = new WeakMap<Connection, Map<string, Promise<PreparedStatement>>>();

/** A client that connects only to an existing file. SQLite would create an empty one if the database had been deleted. */
export class SqliteClient extends Client {
  /** This is small, because a reader drops its cache after each commit of the writer. */
  protected cacheKiB = 2_000;

  override async acquireRawConnection(): Promise<Connection> {
    const { filename, guard } = this.connectionSettings;
    guard.check();
    guard.opening();
    let connection: Connection | undefined;
    try {
      connection = await open(filename);
      const execute = createExecutor(connection);
      for (const pragma of [...pragmas, `PRAGMA cache_size = -${this.cacheKiB}`]) await retryWhileBusy(() => execute(pragma));
      // Check again, now that the connection has opened the WAL and its index, because a checkpoint could hide that the file was overwritten.
      guard.check();
      // Ignore errors, because no checkpoint can finish on a full disk.
      if (guard.isCheckpointUnfinished()) await execute('PRAGMA wal_checkpoint(PASSIVE)').catch(() => undefined);
      return connection;
    } catch (error) {
      guard.closing();
      // If the connection weren't closed, it would keep its WAL open, too.
      if (connection) await super.destroyRawConnection(connection).catch(() => undefined);
      guard.closed();
      throw error;
    }
  }

  override async destroyRawConnection(connection: Connection): Promise<void> {
    const { guard } = this.connectionSettings;
    const isSafe = doesNotThrow(guard.check);
    guard.closing();
    // Finalize the prepared statements, because SQLite doesn't close a connection that still has some.
    for (const preparing of statements.get(connection)?.values() ?? []) {
      const statement = await preparing.catch(() => null);
      await new Promise<void>((resolve) => (statement ? statement.finalize(() => resolve()) : resolve()));
    }
    // If the file was moved, its WAL was left behind. Write acknowledged commits to the file itself, wherever it is now.
    if (!isSafe) await createExecutor(connection)('PRAGMA wal_checkpoint(PASSIVE)').catch(() => undefined);
    await super.destroyRawConnection(connection);
    guard.closed();
  }
}

/** Interrupts statements of lists and searches that take too long. Nothing else runs on the connection, so it can be used again. */
class SqliteListClient extends SqliteClient {
  override async _query(connection: Connection, query: unknown): Promise<unknown> {
    // Repeat the interrupt, because it does nothing until a thread has begun the statement.
    const timer = setInterval(() => connection.interrupt(), deadlines.statement);
    try {
      return await super._query(connection, query);
    } catch (error) {
      throw errorCode(error) === 'SQLITE_INTERRUPT' ? new TookTooLong('The statement took too long.', { cause: error }) : error;
    } finally {
      clearInterval(timer);
    }
  }
}

class SqliteWriterClient extends SqliteClient {
  protected override cacheKiB = 4_000;

  override transaction(...args: unknown[]): Knex.Transaction {
    return new ImmediateTransaction(this, ...args);
  }
}

/**
 * A transaction that begins with `BEGIN IMMEDIATE`. In a deferred transaction, knex's default, a write after a read fails with SQLITE_BUSY
 * if another process wrote in between. If a COMMIT fails, the connection is closed. Otherwise, knex would return it to the pool with the
 * transaction still open, and all later writes would be acknowledged but never committed, and lost when the process ends.
 */
class ImmediateTransaction extends Transaction {
  override begin(connection: Connection): Promise<unknown> {
    this.on('query-error', (error: Error, { sql }: { sql: string }) => {
      if (/^(BEGIN|COMMIT|ROLLBACK)/.test(sql)) markBroken(connection, error);
    });
    return this.query(connection, 'BEGIN IMMEDIATE;');
  }
}

type Text = { sql: string; returnsRows: boolean };

async function runPrepared<Found>(pool: Knex, text: Text, json: string, beforeCommit?: () => void): Promise<Changed<Found>> {
  const connection: Connection = await pool.client.acquireConnection();
  try {
    beforeCommit?.();
    return await runOn(connection, text, json);
  } finally {
    pool.client.releaseConnection(connection);
  }
}

async function runOn<Found>(connection: Connection, { sql, returnsRows }: Text, json: string): Promise<Changed<Found>> {
  try {
    const statement = await prepareOn(connection, sql);
    return await new Promise((resolve, reject) => {
      const fail = (error: Error) => {
        // After SQLITE_BUSY, a statement is still active, and the connection doesn't commit anything until the statement is reset.
        statement.reset(() => reject(error));
      };
      // With `run`, a statement that returns rows would stay active after its first row. `get` would leave its read snapshot open, and later
      // reads on the connection would miss newer commits.
      if (returnsRows) statement.all<Found>(json, (error, rows) => (error ? fail(error) : resolve({ rows, changed: rows.length })));
      else
        statement.run(json, function (this: RunResult, error: Error | null) {
          return error ? fail(error) : resolve({ rows: [], changed: this.changes });
        });
    });
  } catch (error) {
    if (!isDataError(error)) markBroken(connection, error);
    throw error;
  }
}

/** Makes the pool close a connection instead of reusing it. Closing rolls back its uncommitted changes. */
function markBroken(connection: Connection, error: unknown): void {
  Object.assign(connection, { __knex__disposed: error });
}

function prepareOn(connection: Connection, sql: string): Promise<PreparedStatement> {
  const ofConnection = statements.get(connection) ?? new Map<string, Promise<PreparedStatement>>();
  statements.set(connection, ofConnection);
  const prepared =
    ofConnection.get(sql) ??
    new Promise<PreparedStatement>((resolve, reject) => {
      const created: PreparedStatement = connection.prepare(sql, (error: Error | null) => (error ? reject(error) : resolve(created)));
    });
  ofConnection.set(sql, prepared);
  return prepared;
}

function open(filename: string): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const connection = new sqlite3.Database(filename, sqlite3.OPEN_READWRITE, (error) => (error ? reject(error) : resolve(connection)));
  });
}

function createExecutor(connection: Connection): (sql: string) => Promise<void> {
  return promisify<string, void>(connection.exec.bind(connection));
}

/** If two connections create the journal of a new file at the same time, one fails immediately, despite `busy_timeout`. */
async function retryWhileBusy(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; attempt < 100; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (errorCode(error) !== 'SQLITE_BUSY') throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  return work();
}

/** Empties SQLite's write-ahead log, because it still contains erased data. No one can write then, so it gives up soon if others read. */
export async function emptyLog({ kind, write }: Lane): Promise<void> {
  if (kind !== 'sqlite') return;
  const connection: Connection = await write.client.acquireConnection();
  const execute = createExecutor(connection);
  try {
    await execute(`PRAGMA busy_timeout = 50; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = ${deadlines.lock}`);
  } catch (error) {
    // Don't reuse the connection, because it may still have the short timeout.
    markBroken(connection, error);
  } finally {
    write.client.releaseConnection(connection);
  }
  // Check the files right away, because without the WAL's content, the next check couldn't tell an overwriting from this.
  await write.raw('SELECT 1');
}
