import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import knex, { type Knex } from 'knex';
import Client, { type Query } from 'knex/lib/dialects/postgres/index.js';
import pg from 'pg';
import { deadlines } from '../domain/deadlines.ts';
import { type BatchColumns, type BatchRows, type Database, quiet, type Row, type Value } from './database.ts';

/** The key of the advisory lock under which migrations run: "callkey" in ASCII, as a number. */
const migrationLock = '27975062105318777';

/** Instants are bigint columns of epoch milliseconds, which JavaScript's numbers hold exactly. */
const types: Knex.PgCustomTypesConfig = {
  getTypeParser: (oid: number, format: string) =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format === 'binary' ? 'binary' : 'text'),
};

/**
 * In ms. `connection` and `batch` together stay below `deadlines.answer`, so that a request is answered whatever the server does. `statement`
 * is longer than the server's own `statement_timeout`, whose error says more, and shorter than what is left of a lease after a hand-off. A
 * late batch statement is not cancelled: that would end its wait for a synchronous standby and show the commit, and a repeat would then be
 * answered for a call that a failover loses.
 */
export const timeLimits = { connection: 2_000, batch: deadlines.statement, server: 10_000, statement: 12_000 };

/**
 * `synchronous_commit`: an answered commit must survive a power cut, whatever the server's default. `enable_…`: a prepared statement keeps its
 * plan, and one from when a table was small would read the whole table for each batch (measured: 388 cancelled calls a second instead of
 * 23,683).
 */
const settings = [
  `synchronous_commit = on`,
  `statement_timeout = ${timeLimits.server}`,
  `lock_timeout = '2s'`,
  `idle_in_transaction_session_timeout = '10s'`,
  `enable_seqscan = off`,
  `enable_hashjoin = off`,
  `enable_mergejoin = off`,
];
const ofTheSession = settings.map((setting) => `SET ${setting}`).join('; ');
const ofTheTransaction = settings.map((setting) => `SET LOCAL ${setting}`).join('; ');

/** The driver answers with an object that holds the rows. */
async function query<Found extends object>(on: Knex, sql: string, bindings: readonly Value[] = []): Promise<Found[]> {
  const { rows }: { rows: Found[] } = await on.raw(sql, bindings);
  return rows;
}

async function hasLock(transaction: Knex.Transaction): Promise<boolean> {
  const [row] = await query<{ locked: boolean }>(transaction, `SELECT pg_try_advisory_xact_lock(${migrationLock}) AS locked`);
  return row?.locked ?? false;
}

/** A statement takes its lock before its snapshot: one that locks after this look sees all that was committed before it. */
const writersOfCalls = `SELECT virtualtransaction AS id FROM pg_locks
  WHERE relation = 'calls'::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
/** In ms: no statement takes longer. */
const patience = timeLimits.statement;

/**
 * Connections through a pooler such as PgBouncer, which gives the server's connection to another client between transactions: settings of a
 * session and named statements would get lost, or meet those of others.
 */
const pooled = new WeakSet<pg.Client>();

/** PostgreSQL tells a connection the id of its server process; a pooler invents one. */
async function setUp(connection: pg.Client): Promise<void> {
  const asked = (text: string): Asked => ({ text, query_timeout: timeLimits.connection });
  const { rows } = await connection.query<{ pid: number }>(asked('SELECT pg_backend_pid() AS pid'));
  if ('processID' in connection && connection.processID === rows[0]?.pid) {
    await connection.query(asked(ofTheSession));
    return;
  }
  pooled.add(connection);
  const { rows: kept } = await ask(connection, asked(`SELECT current_setting('synchronous_commit') AS commits`)).catch(
    refuseStatementPooling,
  );
  if (kept[0]?.['commits'] !== 'on') throw new Unfit('The pooler in front of PostgreSQL does not keep SET LOCAL synchronous_commit = on.');
}

/** The operator has to change a setting. SQLSTATE 55000: object not in prerequisite state. */
class Unfit extends Error {
  override name = 'Unfit';
  code = '55000';
}

function refuseStatementPooling(error: unknown): never {
  if (!(error instanceof Error && /statement pooling/.test(error.message))) throw error;
  const todo = 'Set pool_mode to transaction or session.';
  throw new Unfit(`The pooler in front of PostgreSQL gives each statement another connection, and Callkey needs transactions. ${todo}`, {
    cause: error,
  });
}

type Asked = pg.QueryConfig & { query_timeout?: number };

/**
 * Sends one statement. Behind a pooler, the settings come in the same transaction, and the statement has no name. Closes a connection that
 * did not answer: a late answer must not be taken for that of the next statement.
 */
async function ask(connection: pg.Client, query: Asked): Promise<pg.QueryResult<Row>> {
  const deadline = performance.now() + (query.query_timeout ?? timeLimits.statement);
  const send = async (text: string, values?: unknown[], name?: string) => {
    try {
      const config = { text, values, name, query_timeout: Math.max(1, deadline - performance.now()) };
      const result = await connection.query<Row>(config);
      // After a failed statement, PostgreSQL answers COMMIT with a successful ROLLBACK.
      if (/^COMMIT\b/i.test(text) && result.command !== 'COMMIT')
        throw new pg.DatabaseError('The transaction was rolled back.', 0, 'error');
      return result;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && error.severity === 'ERROR')) hangUp(connection, error);
      throw error;
    }
  };
  const { text, values, name } = query;
  if (!pooled.has(connection)) return send(text, values, name);
  if (connection.getTransactionStatus() !== 'I') return send(text, values);
  if (/^BEGIN\b/i.test(text)) return send(`${text.replace(/;$/, '')}; ${ofTheTransaction}`);
  await send(`BEGIN; ${ofTheTransaction}`);
  try {
    const result = await send(text, values);
    await send('COMMIT');
    return result;
  } catch (error) {
    if (connection.getTransactionStatus() !== 'I') await send('ROLLBACK').catch(() => hangUp(connection, error));
    throw error;
  }
}

/** Closes a connection at once, and keeps it out of the pool. */
function hangUp(connection: pg.Client, why: unknown): void {
  Object.assign(connection, { __knex__disposed: why });
  connection.end().catch(() => undefined);
}

class PostgresClient extends Client {
  override async acquireRawConnection(): Promise<pg.Client> {
    const connection = await super.acquireRawConnection();
    try {
      await setUp(connection);
      return connection;
    } catch (error) {
      hangUp(connection, error);
      throw error;
    }
  }

  override async _query(connection: pg.Client, query: Query): Promise<Query> {
    const response = await ask(connection, { text: query.sql, values: [...(query.bindings ?? [])], ...query.options });
    return Object.assign(query, { response });
  }
}

/** A commit that changes no table: it waits for the disk and a synchronous standby, like that of a placed call. */
const durableWrite = `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only,
  current_setting('synchronous_commit') AS commits,
  CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'callkey', ''::text) END`;

const diskFull = '53100';

/** Makes PostgreSQL write a row to a new file, and rolls it back. */
async function findRoom(pool: Knex): Promise<void> {
  const trx = await pool.transaction();
  try {
    await trx.raw('CREATE TABLE room_for_calls AS SELECT 1 AS n');
  } finally {
    await trx.rollback();
  }
}

async function tooLate(): Promise<never> {
  await setTimeout(timeLimits.batch, undefined, { ref: false });
  throw new Error('PostgreSQL did not commit a write in time: it hangs, or waits for a synchronous standby.');
}

/** A pool of connections to one PostgreSQL primary. */
export function openPostgres(connectionString: string): Database {
  const pool = knex({
    client: PostgresClient,
    connection: {
      connectionString,
      types,
      application_name: 'callkey',
      connectionTimeoutMillis: timeLimits.connection,
      query_timeout: timeLimits.statement,
      keepAlive: true,
    },
    // Keeps parameters, such as phone numbers, out of errors and so of the log.
    compileSqlOnError: false,
    log: quiet,
    acquireConnectionTimeout: timeLimits.connection,
    // One stays open, so that a restore sees that a core uses the database.
    pool: { min: 1, max: 10 },
  });
  let looking: Promise<void> | undefined;
  /** A batch found the disk full. A commit alone does not show that: its log file was allocated before. */
  let isFull = false;

  async function look(): Promise<void> {
    const [found] = await query<{ standby: boolean; read_only: string; commits: string }>(pool, durableWrite);
    if (found?.standby) throw new Error('PostgreSQL is a standby: give the address of the primary.');
    if (found?.read_only !== 'off') throw new Error('PostgreSQL is read-only (default_transaction_read_only).');
    if (found.commits !== 'on') throw new Error(`Something in front of PostgreSQL lost synchronous_commit: it is ${found.commits}.`);
    if (isFull) await findRoom(pool);
    isFull = false;
  }

  function runner(columns: BatchColumns, sql: (rows: string) => string): (rows: BatchRows) => Promise<pg.QueryResult<Row>> {
    const fields = Object.entries(columns).map(([name, type], index) => `(value->>${index})::${type} AS ${name}`);
    const text = sql(`(SELECT ${fields.join(', ')} FROM jsonb_array_elements($1::jsonb)) AS r`);
    const name = hash('sha256', text, 'hex').slice(0, 32);
    return async (rows) => {
      const connection: pg.Client = await pool.client.acquireConnection();
      try {
        return await ask(connection, { name, text, values: [JSON.stringify(rows)], query_timeout: timeLimits.batch });
      } catch (error) {
        if (error instanceof pg.DatabaseError && error.code === diskFull) isFull = true;
        throw error;
      } finally {
        pool.client.releaseConnection(connection);
      }
    };
  }

  return {
    kind: 'postgres',
    read: pool,
    write: pool,
    batchSize: 32,
    maxInFlight: 2,
    query: (sql, bindings, on = pool) => query(on, sql, bindings),
    prepare(columns, sql) {
      const run = runner(columns, sql);
      return async (rows) => (await run(rows)).rows;
    },
    prepareChange(columns, sql) {
      const run = runner(columns, sql);
      return async (rows) => (await run(rows)).rowCount ?? 0;
    },
    async discardWriter() {
      // PostgreSQL answers after the commit: no connection can have one pending.
    },
    async lockMigrations(transaction, signal) {
      await transaction.raw(`SET LOCAL lock_timeout = '5min'`);
      await transaction.raw(`SET LOCAL statement_timeout = 0`);
      // By default a server keeps working for a client that is gone (the setting: since PostgreSQL 14, not on Windows).
      await transaction.raw(`SELECT set_config(name, '1s', true) FROM pg_settings
        WHERE name = 'client_connection_check_interval' AND version() ~ 'linux|darwin|bsd'`);
      // Polls, since a server that waits for the lock keeps waiting after this process has to stop.
      while (!(await hasLock(transaction))) await setTimeout(100, undefined, signal && { signal });
      const connection: pg.Client = await transaction.client.acquireConnection();
      const giveUp = () => hangUp(connection, signal?.reason);
      signal?.addEventListener('abort', giveUp);
      const done = () => signal?.removeEventListener('abort', giveUp);
      transaction.executionPromise.then(done, done);
    },
    async awaitWriters() {
      const writers = async () => {
        const rows = await query<{ id: string }>(pool, writersOfCalls);
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
    checkWritable: () => {
      // One at a time: while the last one waits for a standby, others would pile up on the server.
      looking ??= look().finally(() => {
        looking = undefined;
      });
      return Promise.race([looking, tooLate()]);
    },
    async risks() {
      const rows = await query<{ name: string }>(
        pool,
        `SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name`,
      );
      return rows.map(({ name }) => `${name} is off on the PostgreSQL server: placed calls may be lost in a power cut. Turn it on.`);
    },
    close: () => pool.destroy(),
  };
}
