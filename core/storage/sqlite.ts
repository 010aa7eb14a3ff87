import { statSync } from 'node:fs';
import knex from 'knex';
import type { Database as Connection } from 'sqlite3';
import { deadlines } from '../domain/deadlines.ts';
import { type BatchColumns, type Database, quiet, type Value } from './database.ts';
import { allRows, changedRows, markBroken, runPrepared, SqliteClient, SqliteWriterClient } from './sqlite-connection.ts';
import { fileGuard, prepareFile } from './sqlite-file.ts';

/**
 * One writer connection and two readers on one file.
 *
 * @param ifMissing `make` creates a file that only its owner can read
 * @throws Problem `not-found` or `unavailable`
 */
export function openSqlite(filename: string, ifMissing: 'make' | 'refuse'): Database {
  prepareFile(filename, ifMissing);
  const guard = fileGuard(filename);
  const connection = { filename, guard };
  const open = (client: typeof SqliteClient, connections: number) =>
    knex({
      client,
      connection,
      useNullAsDefault: true,
      log: quiet,
      compileSqlOnError: false,
      // A wait for a connection and the statement after it end within `deadlines.answer`.
      acquireConnectionTimeout: deadlines.answer - deadlines.statement,
      // One stays open, so that a restore sees that a core uses the file. `validate` runs each time a connection is taken, once a batch.
      pool: { min: 1, max: connections, validate: () => doesNotThrow(guard.check) },
    });
  const write = open(SqliteWriterClient, 1);
  const read = open(SqliteClient, 2);

  return {
    kind: 'sqlite',
    read,
    write,
    batchSize: 32,
    maxInFlight: 1,
    async query<Found extends object>(sql: string, bindings: readonly Value[] = [], on = read): Promise<Found[]> {
      const rows: unknown = await on.raw(sql, bindings);
      return rows as Found[];
    },
    prepare(columns, sql, mode) {
      const text = sql(rowsOf(columns));
      return (rows) => runPrepared(mode === 'write' ? write : read, text, JSON.stringify(rows), allRows);
    },
    prepareChange(columns, sql) {
      const text = sql(rowsOf(columns));
      return (rows) => runPrepared(write, text, JSON.stringify(rows), changedRows);
    },
    async discardWriter(reason) {
      const connection: Connection = await write.client.acquireConnection();
      markBroken(connection, reason);
      write.client.releaseConnection(connection);
      // The pool closes a broken connection when it is next asked for one: at once here, since it may hold the file's lock.
      await write.raw('SELECT 1');
    },
    async checkWritable() {
      // Writes a page, which takes the lock, room on the disk, and a successful fsync.
      await write.transaction((trx) => trx.raw('PRAGMA user_version = 0'));
    },
    async lockMigrations() {
      // BEGIN IMMEDIATE has locked the file.
    },
    async awaitWriters() {
      // Only one can run at a time, and this runs after it.
      return true;
    },
    size: async () => ({ database: bytesOf(filename), wal: bytesOf(`${filename}-wal`) }),
    risks: async () => [],
    async close() {
      await read.destroy();
      await write.destroy();
    },
  };
}

function rowsOf(columns: BatchColumns): string {
  const fields = Object.keys(columns).map((name, index) => `value->>${index} AS ${name}`);
  return `(SELECT ${fields.join(', ')} FROM jsonb_each(?)) AS r`;
}

function bytesOf(file: string): number {
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
