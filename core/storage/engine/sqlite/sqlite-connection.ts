import { promisify } from 'node:util';
import type { Knex } from 'knex';
import Transaction from 'knex/lib/dialects/sqlite3/execution/sqlite-transaction.js';
import Client from 'knex/lib/dialects/sqlite3/index.js';
import sqlite3, { type Database as Connection, type RunResult, type Statement } from 'sqlite3';
import { deadlines } from '../../../domain/deadlines.ts';
import { errorCode } from '../../../domain/problem.ts';
import { isDataError, TookTooLong } from '../errors.ts';

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

const statements = new WeakMap<Connection, Map<string, Statement>>();

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
      // Run a checkpoint, because after a crash, the WAL's index says that one is running until the next one has finished: see
      // sqlite-file.ts. Ignore errors, because no checkpoint can finish on a full disk.
      await execute('PRAGMA wal_checkpoint(PASSIVE)').catch(() => undefined);
      return connection;
    } catch (error) {
      // If the connection weren't closed, it would keep its WAL open, too.
      guard.closing();
      connection?.close();
      guard.closed();
      throw error;
    }
  }

  override async destroyRawConnection(connection: Connection): Promise<void> {
    this.connectionSettings.guard.closing();
    // Finalize the prepared statements, because SQLite doesn't close a connection that still has some.
    for (const statement of statements.get(connection)?.values() ?? []) {
      await new Promise<void>((resolve) => statement.finalize(() => resolve()));
    }
    // If the file was moved, its WAL was left behind. Write acknowledged commits to the file itself, wherever it is now.
    await createExecutor(connection)('PRAGMA wal_checkpoint(PASSIVE)').catch(() => undefined);
    await super.destroyRawConnection(connection);
    this.connectionSettings.guard.closed();
  }
}

/**
 * A client for lists and searches. It interrupts a statement that takes too long. Nothing else runs on its connection, so the connection
 * can be used again.
 */
export class SqliteListClient extends SqliteClient {
  override async _query(connection: Connection, query: unknown): Promise<unknown> {
    // Repeat the interrupt, because it does nothing until a thread has begun the statement.
    const timer = setInterval(() => connection.interrupt(), deadlines.statement);
    try {
      return await super._query(connection, query);
    } catch (error) {
      throw errorCode(error) === 'SQLITE_INTERRUPT' ? new TookTooLong(error) : error;
    } finally {
      clearInterval(timer);
    }
  }
}

export class SqliteWriterClient extends SqliteClient {
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

type Changed<Found> = { rows: Found[]; changed: number };

/** A statement, and whether it returns rows. */
type Text = { sql: string; returnsRows: boolean };

export function toText(sql: string): Text {
  return { sql, returnsRows: /^SELECT\b|\bRETURNING\b/.test(sql) };
}

/** Runs a statement that stays prepared on its connection. */
export async function runPrepared<Found>(pool: Knex, text: Text, json: string, beforeCommit?: () => void): Promise<Changed<Found>> {
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
export function markBroken(connection: Connection, error: unknown): void {
  Object.assign(connection, { __knex__disposed: error });
}

async function prepareOn(connection: Connection, sql: string): Promise<Statement> {
  const ofConnection = statements.get(connection) ?? new Map<string, Statement>();
  statements.set(connection, ofConnection);
  const prepared = ofConnection.get(sql);
  if (prepared) return prepared;
  const statement = await new Promise<Statement>((resolve, reject) => {
    const created: Statement = connection.prepare(sql, (error: Error | null) => (error ? reject(error) : resolve(created)));
  });
  ofConnection.set(sql, statement);
  return statement;
}

function open(filename: string): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const connection = new sqlite3.Database(filename, sqlite3.OPEN_READWRITE, (error) => (error ? reject(error) : resolve(connection)));
  });
}

function createExecutor(connection: Connection): (sql: string) => Promise<void> {
  return promisify<string, void>(connection.exec.bind(connection));
}

/**
 * Retries work while the file is busy, because if two connections create the journal of a new file at the same time, one fails immediately,
 * despite `busy_timeout`.
 */
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
