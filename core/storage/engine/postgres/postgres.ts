import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import knex, { type Knex } from 'knex';
import type { Sharding } from 'knex/lib/dialects/postgres/index.js';
import pg from 'pg';
import { errorCode } from '../../../domain/problem.ts';
import { shardSchema } from '../call-lanes.ts';
import {
  awaitGone,
  type BatchRows,
  inTransaction,
  isOnShard,
  type Lane,
  type Mode,
  type OpenedDatabase,
  quiet,
  type Statement,
  toStatement,
  type Value,
} from '../database.ts';
import { countSeparately, withCount } from '../ended-calls.ts';
import { requireCoordinator } from './cluster.ts';
import { awaitNodes, hangUp, PostgresClient, PostgresListClient, send, timeLimits } from './postgres-connection.ts';

/** The key of the advisory lock for migrations: "callkey" in ASCII, as a number. */
export const migrationLock = '27975062105318777';

/** `admin restore` recognizes connections of cores and other admin commands by this name. */
export const applicationName = 'callkey';

/** Reads bigint as a number: the columns contain epoch milliseconds and counts. */
const types: Knex.PgCustomTypesConfig = {
  getTypeParser: (oid: number, format: string) =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format === 'binary' ? 'binary' : 'text'),
};

async function query<Found extends object>(on: Knex, sql: string, bindings: readonly Value[] = []): Promise<Found[]> {
  const { rows }: { rows: Found[] } = await on.raw(sql, bindings);
  return rows;
}

async function hasLock(transaction: Knex.Transaction): Promise<boolean> {
  const [row] = await query<{ locked: boolean }>(transaction, `SELECT pg_try_advisory_xact_lock(${migrationLock}) AS locked`);
  return row?.locked ?? false;
}

/**
 * Finds the transactions that write calls. A statement takes its lock before its snapshot, so if it takes the lock after this check, it
 * sees everything that was committed before the check.
 */
const writersOfCalls = `SELECT virtualtransaction AS id FROM pg_locks
  WHERE relation = 'calls'::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** Finds these transactions on all nodes, where each shard's tables have names such as `calls_102008`. */
const writersOnNodes = `SELECT nodeid || ' ' || id AS id FROM run_command_on_all_nodes($$
  SELECT coalesce(jsonb_agg(virtualtransaction), '[]') FROM pg_locks JOIN pg_class c ON c.oid = relation
  WHERE c.relname ~ '^calls_[0-9]+$' AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  $$) AS node CROSS JOIN jsonb_array_elements_text(node.result::jsonb) AS id`;

/** A commit that changes no tables. Like a placed call's commit, it waits for the disk and a synchronous standby. */
const durableWrite = `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only,
  current_setting('synchronous_commit') AS commits,
  CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'callkey', ''::text) END`;

/** Superusers and members of pg_monitor may list the files of the write-ahead log. */
const databaseSize = `SELECT pg_database_size(current_database()) AS database,
  has_function_privilege('pg_ls_waldir()', 'EXECUTE') AS may_list`;

const diskFull = '53100';

/** Finds out whether there's room for 256 KiB, in a table that exists: the role may not be allowed to create one, not even a temporary one. */
async function findRoom(pool: Knex): Promise<void> {
  const trx = await pool.transaction();
  try {
    // PostgreSQL can't compress random digits.
    const filler = `(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 8192))`;
    await trx.raw(`INSERT INTO audit_events (id, at, action, subject_kind, subject_id, subject_name, address)
      VALUES (gen_random_uuid()::text, 0, 'probe', 'server', '', ${filler}, '')`);
  } finally {
    await trx.rollback();
  }
}

async function timeOut(): Promise<never> {
  await setTimeout(timeLimits.batch, undefined, { ref: false });
  throw new Error("PostgreSQL didn't commit a write in time: it's hanging, or waiting for a synchronous standby.");
}

/**
 * The maximum number of connections in each lane. Their sum is in operations/postgresql.md, because poolers and `max_connections` must allow for it.
 */
const connections = { keys: 4, console: 2, lists: 2, 'sign-in': 1, background: 2 };
/** The maximum number of connections to each shard, in each lane. */
const shardConnections = { keys: 2, lists: 1, background: 1 };

/** Opens a connection pool for each lane to one PostgreSQL primary. It may be any of the hosts in the URL. */
export function openPostgres(connectionString: string): OpenedDatabase {
  const pools = new Map<string, Knex[]>();
  const sharding: Sharding = { count: 0 };
  function open(name: keyof typeof connections, max: number, shard?: string): Knex {
    return openPool(connectionString, name === 'lists' ? PostgresListClient : PostgresClient, max, { sharding, shard });
  }
  /**
   * @returns a function that returns the lane's databases, one for each shard. It opens them when it's first called after the calls have
   * been divided into shards
   */
  function shardsOf(name: keyof typeof shardConnections): Lane['shards'] {
    let shards: readonly Lane[] = [];
    return () => {
      if (shards.length !== sharding.count)
        shards = Array.from({ length: sharding.count }, (_, number) => {
          const pool = open(name, shardConnections[name], shardSchema(number));
          pools.get(name)?.push(pool);
          return createLane(pool, sharding, () => []);
        });
      return shards;
    };
  }
  const background = shardsOf('background');
  const shards = { keys: shardsOf('keys'), console: background, lists: shardsOf('lists'), 'sign-in': background, background };
  function lane(name: keyof typeof connections): Lane {
    const pool = open(name, connections[name]);
    pools.set(name, [pool]);
    return createLane(pool, sharding, shards[name]);
  }
  const console = lane('console');
  return {
    ...console,
    lanes: { console, keys: lane('keys'), lists: lane('lists'), 'sign-in': lane('sign-in'), background: lane('background') },
    pools,
    async close() {
      await Promise.all([...pools.values()].flat().map((pool) => pool.destroy()));
    },
  };
}

/** @param more.shard the schema of a shard, whose tables the statements then use. Its connections are opened when they're needed */
function openPool(
  connectionString: string,
  client: typeof PostgresClient,
  max: number,
  more: { sharding: Sharding; shard?: string | undefined },
): Knex {
  const pool = knex({
    ...more,
    client,
    // Otherwise, knex asks for it, and leaves the connection open if that fails.
    version: '15',
    connection: {
      connectionString,
      types,
      application_name: applicationName,
      connectionTimeoutMillis: timeLimits.connection,
      query_timeout: timeLimits.statement,
      keepAlive: true,
    },
    // Keeps parameters such as phone numbers out of errors, and so out of the log.
    compileSqlOnError: false,
    log: quiet,
    acquireConnectionTimeout: timeLimits.connection,
    // One connection stays open, so that a restore sees that a core is using the database.
    pool: { min: more.shard === undefined ? 1 : 0, max },
  });
  return more.shard === undefined ? repeatDeadlocked(pool) : pool;
}

const deadlock = '40P01';
/** The maximum number of times that a transaction is tried if it keeps ending in a deadlock. */
const attempts = 3;

/**
 * Repeats transactions that ended in a deadlock. The order of statements can't prevent all of them: two administrators may disable each
 * other, and with shards, Citus locks the whole table on one node to change one row, and for some tables, others as well.
 */
function repeatDeadlocked(pool: Knex): Knex {
  const begin = pool.transaction.bind(pool);
  async function repeat<Result>(work: (trx: Knex.Transaction) => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await begin(work);
      } catch (error) {
        if (attempt === attempts || errorCode(error) !== deadlock) throw error;
      }
    }
  }
  const transaction = (work?: Parameters<typeof repeat>[0]) => (work ? repeat(work) : begin());
  return Object.defineProperty(pool, 'transaction', { value: transaction });
}

function createLane(pool: Knex, sharding: Sharding, shards: Lane['shards']): Lane {
  const hasOnlyCalls = isOnShard(pool);
  let looking: Promise<void> | undefined;
  /** Whether a batch found that the disk is full. A commit alone doesn't show that, because space for its log was already allocated. */
  let isFull = false;

  async function look(): Promise<void> {
    const [server] = await query<{ standby: boolean; read_only: string; commits: string }>(pool, durableWrite);
    if (server?.standby) throw new Error('PostgreSQL is a standby: set DATABASE_URL to the primary.');
    if (server?.read_only !== 'off') throw new Error('PostgreSQL is read-only (default_transaction_read_only).');
    if (server.commits !== 'on') throw new Error(`Something in front of PostgreSQL changed synchronous_commit to ${server.commits}.`);
    if (isFull) await findRoom(pool);
    isFull = false;
  }

  function runner<Found extends object>(text: string) {
    const name = hash('sha256', text, 'hex').slice(0, 32);
    return async (given: BatchRows, beforeCommit?: () => void, transaction?: Knex, query_timeout = timeLimits.statement) => {
      const { client } = transaction ?? pool;
      const connection: pg.Client = await client.acquireConnection();
      try {
        const query = { name, text, values: [JSON.stringify(given)], query_timeout: transaction ? query_timeout : timeLimits.batch };
        const { rows, rowCount } = await send<Found>(connection, query, beforeCommit);
        return { rows, changed: rowCount ?? 0 };
      } catch (error) {
        if (error instanceof pg.DatabaseError && error.code === diskFull) isFull = true;
        throw error;
      } finally {
        client.releaseConnection(connection);
      }
    };
  }

  return {
    kind: 'postgres',
    hasOnlyCalls,
    shards,
    useShards(count) {
      sharding.count = count;
    },
    read: pool,
    write: pool,
    // A shard gets only a part of the requests, so a single connection makes larger batches.
    maxInFlight: hasOnlyCalls ? 1 : 2,
    query: (sql, bindings, on = pool) => query(on, sql, bindings),
    prepare<Found extends object>(sql: string, mode: Mode): Statement<Found> {
      const text = toStatement(sql, 'postgres');
      if (mode !== 'end' || !hasOnlyCalls) return runner(mode === 'end' ? withCount(text) : text);
      const run = runner<Found>(text);
      return (rows, beforeCommit, transaction) =>
        inTransaction(transaction ?? pool, async (trx) => {
          const result = await run(rows, beforeCommit, trx, timeLimits.batch);
          await countSeparately(trx, result.rows);
          return result;
        });
    },
    async discardWriter() {
      // Nothing to do: PostgreSQL responds only after the commit, so no connection can have an unfinished one.
    },
    async lockMigrations(transaction, signal) {
      if (sharding.count > 0) {
        await requireCoordinator(this);
        await transaction.raw(`SET LOCAL citus.multi_shard_modify_mode = 'sequential'`);
      }
      await transaction.raw(`SET LOCAL lock_timeout = '5min'`);
      await transaction.raw(`SET LOCAL statement_timeout = 0`);
      // By default, a server continues a statement after its client is gone. This setting ends it. It has existed since PostgreSQL 14, but
      // not on Windows.
      await transaction.raw(`SELECT set_config(name, '1s', true) FROM pg_settings
        WHERE name = 'client_connection_check_interval' AND version() ~ 'linux|darwin|bsd'`);
      // Poll, because a server that waits for the lock would keep waiting even if this process has to stop.
      while (!(await hasLock(transaction))) await setTimeout(100, undefined, signal && { signal });
      const connection: pg.Client = await transaction.client.acquireConnection();
      const giveUp = () => hangUp(connection, signal?.reason);
      signal?.addEventListener('abort', giveUp);
      const done = () => signal?.removeEventListener('abort', giveUp);
      transaction.executionPromise.then(done, done);
    },
    async awaitWriters() {
      const writers = async () => {
        const rows = await query<{ id: string }>(pool, sharding.count > 0 ? writersOnNodes : writersOfCalls);
        return rows.map(({ id }) => id);
      };
      return (await awaitGone(writers, timeLimits.statement, () => setTimeout(5))).length === 0;
    },
    async awaitNodes() {
      if (sharding.count === 0) return;
      const connection: pg.Client = await pool.client.acquireConnection();
      await awaitNodes(connection).finally(() => pool.client.releaseConnection(connection));
    },
    checkWritable: () => {
      // Run only one check at a time, because while one waits for a standby, others would pile up on the server.
      looking ??= look().finally(() => {
        looking = undefined;
      });
      return Promise.race([looking, timeOut()]);
    },
    async size() {
      const [size] = await query<{ database: number; may_list: boolean }>(pool, databaseSize);
      if (!size) throw new Error("PostgreSQL didn't report the size of the database.");
      // This is the whole server's write-ahead log, because all of its databases share it.
      const [log] = size.may_list ? await query<{ bytes: number }>(pool, 'SELECT sum(size)::bigint AS bytes FROM pg_ls_waldir()') : [];
      return { database: size.database, wal: log?.bytes ?? null };
    },
    async risks() {
      const off = `SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name`;
      const onNodes = `SELECT DISTINCT name FROM run_command_on_all_nodes($$SELECT json_agg(name) FROM (${off}) AS off$$) AS node
        CROSS JOIN jsonb_array_elements_text(nullif(node.result, '')::jsonb) AS name WHERE node.success ORDER BY name`;
      const rows = await query<{ name: string }>(pool, sharding.count > 0 ? onNodes : off);
      return rows.map(({ name }) => `${name} is off on the PostgreSQL server: placed calls may be lost in a power failure. Turn it on.`);
    },
  };
}
