import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import knex, { type Knex } from 'knex';
import pg from 'pg';
import { type Database, quiet, type Row } from './database.ts';
import { isOutage } from './faults.ts';

/** The key of the advisory lock under which migrations run: "callkey" in ASCII, as a number. */
const migrationLock = '27975062105318777';

/** Instants are bigint columns of epoch milliseconds, which JavaScript's numbers hold exactly. */
const types: Knex.PgCustomTypesConfig = {
  getTypeParser: (oid: number, format: string) =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format === 'binary' ? 'binary' : 'text'),
};

/**
 * An answered commit must survive a power cut, whatever the server's default is. Nothing here takes long. And all is looked up by an index:
 * a prepared statement keeps its plan, and one that was made while a table was small would read all of it for every batch once it has
 * grown (measured: 388 cancelled calls a second instead of 23,683).
 */
const settings = [
  `SET synchronous_commit = on`,
  `SET statement_timeout = '10s'`,
  `SET lock_timeout = '5s'`,
  `SET idle_in_transaction_session_timeout = '10s'`,
  `SET enable_seqscan = off`,
  `SET enable_hashjoin = off`,
  `SET enable_mergejoin = off`,
].join('; ');

/** A statement takes its lock before it looks, so whoever comes later than this sees what had been committed by then. */
const writersOfCalls = `SELECT virtualtransaction AS id FROM pg_locks
  WHERE relation = 'calls'::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
/** In ms: longer than any statement may take. */
const patience = 12_000;

/** A pool of connections to one PostgreSQL primary. */
export function openPostgres(connectionString: string): Database {
  const pool = knex({
    client: 'pg',
    connection: {
      connectionString,
      types,
      application_name: 'callkey',
      connectionTimeoutMillis: 3_000,
      query_timeout: 12_000,
      keepAlive: true,
    },
    // Errors carry the statement without its parameters, which no log should have.
    compileSqlOnError: false,
    log: quiet,
    acquireConnectionTimeout: 3_000,
    pool: {
      // One stays open: an idle core still shows that it is there, and nobody restores beneath it.
      min: 1,
      max: 10,
      afterCreate: (connection: pg.Client, done: (error: Error | null, connection: pg.Client) => void) => {
        connection.query(settings, (error) => done(error ?? null, connection));
      },
    },
  });
  return {
    kind: 'postgres',
    read: pool,
    write: pool,
    batchSize: 32,
    lanes: 2,
    prepare: (columns, sql) => {
      const fields = Object.entries(columns).map(([name, type], index) => `(value->>${index})::${type} AS ${name}`);
      const text = sql(`(SELECT ${fields.join(', ')} FROM jsonb_array_elements($1::jsonb)) AS r`);
      const name = hash('sha256', text, 'hex').slice(0, 32);
      return async (rows) => {
        const connection: pg.Client = await pool.client.acquireConnection();
        try {
          const result = await connection.query<Row>({ name, text, values: [JSON.stringify(rows)] });
          return result.rows;
        } catch (error) {
          // A server that froze has not answered yet: the connection cannot be asked anything else.
          if (isOutage(error)) Object.assign(connection, { __knex__disposed: error });
          throw error;
        } finally {
          pool.client.releaseConnection(connection);
        }
      };
    },
    async lockMigrations(transaction) {
      await transaction.raw(`SET LOCAL lock_timeout = '5min'`);
      await transaction.raw(`SET LOCAL statement_timeout = 0`);
      await transaction.raw(`SELECT pg_advisory_xact_lock(${migrationLock})`).options({ query_timeout: 300_000 });
    },
    async awaitWriters() {
      const writers = async () => {
        const { rows }: { rows: { id: string }[] } = await pool.raw(writersOfCalls);
        return rows.map(({ id }) => id);
      };
      const before = new Set(await writers());
      const deadline = performance.now() + patience;
      while ((await writers()).some((id) => before.has(id))) {
        if (performance.now() > deadline) return false;
        await setTimeout(5);
      }
      return true;
    },
    close: () => pool.destroy(),
  };
}
