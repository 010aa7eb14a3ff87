import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import knex, { type Knex } from 'knex';
import Transaction from 'knex/lib/dialects/sqlite3/execution/sqlite-transaction.js';
import Client from 'knex/lib/dialects/sqlite3/index.js';
import type { Database as Connection, Statement } from 'sqlite3';
import { Problem } from '../domain/problem.ts';
import { type Database, quiet, type Row } from './database.ts';
import { databaseErrorText } from './error-text.ts';

/**
 * `synchronous=FULL`: an answered commit survives a power cut, in WAL mode too. A checkpoint at 1,000 pages keeps the WAL near 4 MB;
 * after a long reader has let it grow, it is cut back to 64 MB.
 */
const pragmas = [
  'PRAGMA busy_timeout = 5000',
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA foreign_keys = ON',
  'PRAGMA journal_size_limit = 67108864',
  'PRAGMA cache_size = -8000',
];

const statements = new WeakMap<Connection, Map<string, Statement>>();

class SqliteClient extends Client {
  override async acquireRawConnection(): Promise<Connection> {
    const connection = await super.acquireRawConnection();
    const execute = promisify<string, void>(connection.exec.bind(connection));
    for (const pragma of pragmas) await patiently(() => execute(pragma));
    return connection;
  }

  override async destroyRawConnection(connection: Connection): Promise<void> {
    // SQLite refuses to close a connection that has prepared statements.
    for (const statement of statements.get(connection)?.values() ?? []) {
      await new Promise<void>((resolve) => statement.finalize(() => resolve()));
    }
    await super.destroyRawConnection(connection);
  }
}

/** Where two connections make the journal of a new file at the same moment, SQLite fails one of them without waiting for the other. */
async function patiently(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; attempt < 100; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY')) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  return work();
}

/** Knex begins transactions deferred: a read that then writes fails at once with SQLITE_BUSY when another process wrote in between. */
class ImmediateTransaction extends Transaction {
  override begin(connection: unknown): Promise<unknown> {
    return this.query(connection, 'BEGIN IMMEDIATE;');
  }
}

class SqliteWriterClient extends SqliteClient {
  override transaction(...args: unknown[]): Knex.Transaction {
    return new ImmediateTransaction(this, ...args);
  }
}

/**
 * One writer connection and a few readers on one file. A missing file is made, readable by its owner alone, if that is wanted.
 *
 * @throws Problem `not-found` or `unavailable`
 */
export function openSqlite(filename: string, ifMissing: 'make' | 'refuse'): Database {
  if (ifMissing === 'make') makeFile(filename);
  else requireFile(filename);
  const open = (client: typeof SqliteClient, connections: number) =>
    knex({
      client,
      connection: { filename },
      useNullAsDefault: true,
      log: quiet,
      compileSqlOnError: false,
      acquireConnectionTimeout: 10_000,
      // One stays open: an idle core still shows that it runs on this file, which a restore must not replace.
      pool: { min: 1, max: connections },
    });
  const write = open(SqliteWriterClient, 1);
  const read = open(SqliteClient, 2);
  return {
    kind: 'sqlite',
    read,
    write,
    batchSize: 32,
    lanes: 1,
    prepare(columns, sql, mode) {
      const fields = Object.keys(columns).map((name, index) => `value->>${index} AS ${name}`);
      const text = sql(`(SELECT ${fields.join(', ')} FROM jsonb_each(?)) AS r`);
      return (rows) => runPrepared(mode === 'write' ? write : read, text, JSON.stringify(rows));
    },
    async lockMigrations() {
      // BEGIN IMMEDIATE has locked the file already.
    },
    async awaitWriters() {
      // There is one at a time: what was under way has ended.
      return true;
    },
    async close() {
      await read.destroy();
      await write.destroy();
    },
  };
}

function makeFile(filename: string): void {
  try {
    mkdirSync(dirname(filename), { recursive: true, mode: 0o700 });
    closeSync(openSync(filename, 'a', 0o600));
  } catch (error) {
    throw notOpened(filename, error);
  }
}

/** @throws Problem `not-found` or `unavailable` */
export function requireFile(filename: string): void {
  try {
    statSync(filename);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw notOpened(filename, error);
    throw new Problem('not-found', `There is no database ${filename}. Set DATABASE_URL to the one that is meant, or start a core first.`);
  }
}

function notOpened(filename: string, error: unknown): Problem {
  return new Problem('unavailable', `The database file ${filename} cannot be opened: ${databaseErrorText(error) ?? String(error)}.`, {
    cause: error,
  });
}

/**
 * `all`, never `get`: a prepared `get` leaves its read snapshot open, and later reads on the connection miss what has been committed
 * since.
 */
async function runPrepared(pool: Knex, sql: string, json: string): Promise<Row[]> {
  const connection: Connection = await pool.client.acquireConnection();
  try {
    const statement = await prepareOn(connection, sql);
    return await new Promise((resolve, reject) => {
      statement.all<Row>(json, (error, rows) => (error ? reject(error) : resolve(rows)));
    });
  } finally {
    pool.client.releaseConnection(connection);
  }
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
