import knex from 'knex';
import type { Database as Connection } from 'sqlite3';
import { deadlines } from '../domain/deadlines.ts';
import { type Database, quiet } from './database.ts';
import { markBroken, runPrepared, SqliteClient, SqliteWriterClient } from './sqlite-connection.ts';
import { fileGuard, prepareFile } from './sqlite-file.ts';

/**
 * One writer connection and a few readers on one file. A missing file is made, readable by its owner alone, if that is wanted.
 *
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
      // With the statement, less than the six seconds in which everybody has an answer.
      acquireConnectionTimeout: deadlines.answer - deadlines.statement,
      // One stays open: an idle core still shows that it runs on this file, which a restore must not replace. And the file is looked for
      // each time that a connection is taken: that costs 4 µs, and a batch takes one connection.
      pool: { min: 1, max: connections, validate: () => isQuiet(guard.check) },
    });
  const write = open(SqliteWriterClient, 1);
  const read = open(SqliteClient, 2);

  return {
    kind: 'sqlite',
    read,
    write,
    batchSize: 32,
    maxInFlight: 1,
    prepare(columns, sql, mode) {
      const fields = Object.keys(columns).map((name, index) => `value->>${index} AS ${name}`);
      const text = sql(`(SELECT ${fields.join(', ')} FROM jsonb_each(?)) AS r`);
      return (rows) => runPrepared(mode === 'write' ? write : read, text, JSON.stringify(rows));
    },
    async discardWriter(reason) {
      const connection: Connection = await write.client.acquireConnection();
      markBroken(connection, reason);
      write.client.releaseConnection(connection);
      // The pool closes it when the next one is asked for. That must not be left to chance: it may hold the file's lock.
      await write.raw('SELECT 1');
    },
    async checkWritable() {
      // Writes a page, and so needs the lock, room on the disk, and an fsync that succeeds.
      await write.transaction((trx) => trx.raw('PRAGMA user_version = 0'));
    },
    async lockMigrations() {
      // BEGIN IMMEDIATE has locked the file already.
    },
    async awaitWriters() {
      // There is one at a time: what was under way has ended.
      return true;
    },
    risks: async () => [],
    async close() {
      await read.destroy();
      await write.destroy();
    },
  };
}

function isQuiet(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
