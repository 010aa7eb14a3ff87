import { promisify } from 'node:util';
import type { Knex } from 'knex';
import Transaction from 'knex/lib/dialects/sqlite3/execution/sqlite-transaction.js';
import Client from 'knex/lib/dialects/sqlite3/index.js';
import sqlite3, { type Database as Connection, type Statement } from 'sqlite3';
import { deadlines } from '../domain/deadlines.ts';
import { codeOf } from '../domain/error-code.ts';
import type { Row } from './database.ts';
import { isDataError } from './errors.ts';

/**
 * `synchronous=FULL`: an answered commit survives a power cut, in WAL mode too. A checkpoint at 1,000 pages keeps the WAL near 4 MB;
 * after a long reader has let it grow, it is cut back to 64 MB.
 */
const pragmas = [
  `PRAGMA busy_timeout = ${deadlines.statement}`,
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA foreign_keys = ON',
  'PRAGMA journal_size_limit = 67108864',
  'PRAGMA cache_size = -8000',
];

const statements = new WeakMap<Connection, Map<string, Statement>>();

/** Connects to a file that is there already: SQLite would make an empty one where the database has gone. */
export class SqliteClient extends Client {
  override async acquireRawConnection(): Promise<Connection> {
    const { filename, guard } = this.connectionSettings;
    guard.check();
    guard.opening();
    let connection: Connection | undefined;
    try {
      connection = await open(filename);
      const execute = executorOf(connection);
      for (const pragma of pragmas) await retryWhileBusy(() => execute(pragma));
      return connection;
    } catch (error) {
      // One that stays open would keep its WAL, too.
      connection?.close();
      guard.closed();
      throw error;
    }
  }

  override async destroyRawConnection(connection: Connection): Promise<void> {
    // SQLite refuses to close a connection that has prepared statements.
    for (const statement of statements.get(connection)?.values() ?? []) {
      await new Promise<void>((resolve) => statement.finalize(() => resolve()));
    }
    // Where the file was moved, its WAL stays behind: what has been answered goes into the file itself, wherever that is now.
    await executorOf(connection)('PRAGMA wal_checkpoint(PASSIVE)').catch(() => undefined);
    await super.destroyRawConnection(connection);
    this.connectionSettings.guard.closed();
  }
}

export class SqliteWriterClient extends SqliteClient {
  override transaction(...args: unknown[]): Knex.Transaction {
    return new ImmediateTransaction(this, ...args);
  }
}

/**
 * Knex begins transactions deferred: a read that then writes fails at once with SQLITE_BUSY when another process wrote in between. And
 * it gives a connection back to the pool whatever became of its COMMIT: one that failed leaves the transaction open, and all that is
 * written later is answered, never committed, and lost with the process.
 */
class ImmediateTransaction extends Transaction {
  override begin(connection: Connection): Promise<unknown> {
    this.on('query-error', (error: Error, { sql }: { sql: string }) => {
      if (/^(BEGIN|COMMIT|ROLLBACK)/.test(sql)) markBroken(connection, error);
    });
    return this.query(connection, 'BEGIN IMMEDIATE;');
  }
}

/**
 * `all`, never `get`: a prepared `get` leaves its read snapshot open, and later reads on the connection miss what has been committed
 * since.
 */
export async function runPrepared(pool: Knex, sql: string, json: string): Promise<Row[]> {
  const connection: Connection = await pool.client.acquireConnection();
  try {
    const statement = await prepareOn(connection, sql);
    return await new Promise((resolve, reject) => {
      statement.all<Row>(json, (error, rows) => {
        if (!error) return resolve(rows);
        // One that ended in SQLITE_BUSY is still active, and keeps the connection from committing anything that comes after it.
        statement.reset(() => reject(error));
      });
    });
  } catch (error) {
    if (!isDataError(error)) markBroken(connection, error);
    throw error;
  } finally {
    pool.client.releaseConnection(connection);
  }
}

/** Has the pool close a connection, with what it has not committed, instead of giving it to the next one who asks. */
export function markBroken(connection: Connection, error: unknown): void {
  Object.assign(connection, { __knex__disposed: error });
}

async function prepareOn(connection: Connection, sql: string): Promise<Statement> {
  const known = statements.get(connection) ?? new Map<string, Statement>();
  statements.set(connection, known);
  const prepared = known.get(sql);
  if (prepared) return prepared;
  const statement = await new Promise<Statement>((resolve, reject) => {
    const made: Statement = connection.prepare(sql, (error: Error | null) => (error ? reject(error) : resolve(made)));
  });
  known.set(sql, statement);
  return statement;
}

function open(filename: string): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const connection = new sqlite3.Database(filename, sqlite3.OPEN_READWRITE, (error) => (error ? reject(error) : resolve(connection)));
  });
}

function executorOf(connection: Connection): (sql: string) => Promise<void> {
  return promisify<string, void>(connection.exec.bind(connection));
}

/** Where two connections make the journal of a new file at the same moment, SQLite fails one of them without waiting for the other. */
async function retryWhileBusy(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; attempt < 100; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) !== 'SQLITE_BUSY') throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  return work();
}
