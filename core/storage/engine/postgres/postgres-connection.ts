import { setTimeout } from 'node:timers/promises';
import Client, { type Query } from 'knex/lib/dialects/postgres/index.js';
import pg from 'pg';
import { deadlines } from '../../../domain/deadlines.ts';
import { errorCode } from '../../../domain/problem.ts';
import { awaitGone, type Row } from '../database.ts';
import { NotOnAllNodes, TookTooLong, UnusableDatabase } from '../errors.ts';
import { parseAddresses } from './postgres-address.ts';

/**
 * In ms. `connection` and `batch` together are shorter than `deadlines.answer`, so that a request gets a response even if the server hangs.
 * `statement` is longer than the server's own `statement_timeout`, which gives a clearer error, and shorter than the time left on a lease
 * after a hand-off. A late batch statement isn't cancelled, because that would end its wait for a synchronous standby and make the commit
 * visible. The core could then acknowledge a retry of a call that a failover loses.
 */
export const timeLimits = { connection: 2_000, batch: deadlines.statement, server: 10_000, statement: 12_000 };

/**
 * `synchronous_commit`: an acknowledged commit must survive a power failure, whatever the server's default is. `enable_…`: a prepared
 * statement keeps its plan. A plan from when a table was small would read the whole table for each batch (measured: 388 cancelled calls per
 * second instead of 23,683). `jit`: with these settings, a table without an index seems so expensive that a server with LLVM compiles the
 * statement, which takes longer than running it. `client_min_messages`: a server's default could hide the warnings that `unconfirmed` needs.
 * The others have defaults that a role or a database can change: with another isolation level, concurrent requests would fail.
 *
 * @param version such as 170004
 */
const settings = (statementTimeout: number, version: number) => [
  `transform_null_equals = off`,
  ...(version >= 140_000 ? [`idle_session_timeout = 0`] : []),
  ...(version >= 170_000 ? [`transaction_timeout = 0`] : []),
  `synchronous_commit = on`,
  `statement_timeout = ${statementTimeout}`,
  `lock_timeout = '2s'`,
  `idle_in_transaction_session_timeout = '10s'`,
  `client_min_messages = warning`,
  `enable_seqscan = off`,
  `enable_hashjoin = off`,
  `enable_mergejoin = off`,
  `jit = off`,
];
const inSql = (scope: 'SESSION' | 'LOCAL', statementTimeout: number, version: number) => {
  // A transaction that has begun has an isolation level of its own.
  const isolation = scope === 'LOCAL' ? 'transaction_isolation' : 'default_transaction_isolation';
  return [`${isolation} = 'read committed'`, ...settings(statementTimeout, version)].map((setting) => `SET ${scope} ${setting}`).join('; ');
};

/**
 * Connections through a pooler such as PgBouncer, with the settings that each transaction includes. Between transactions, a pooler gives
 * the server's connection to another client, so session settings and named statements would be lost or mixed up.
 */
const pooled = new WeakMap<pg.Client, string>();

/**
 * In ms: how long a connection keeps the plans of its prepared statements. A plan from when `calls` was empty has no index conditions, and
 * reads the whole table for each batch. Autovacuum would fix that only after a minute, and only if it isn't turned off. Planning again
 * takes 2 ms.
 */
export const planLifetime = 10_000;
const plannedAt = new WeakMap<pg.Client, number>();

/** Sets up a connection. PostgreSQL sends each one the ID of its server process, whereas a pooler makes one up. */
async function setUp(connection: pg.Client, statementTimeout: number, shard: string | undefined): Promise<void> {
  const limited = (text: string): Statement => ({ text, query_timeout: timeLimits.connection });
  const about = `SELECT pg_backend_pid() AS pid, current_setting('server_encoding') AS encoding,
    current_setting('server_version_num')::integer AS version`;
  const { rows } = await connection.query<{ pid: number; encoding: string; version: number }>(limited(about));
  const [{ pid, encoding, version } = { pid: 0, encoding: '', version: 0 }] = rows;
  if (encoding !== 'UTF8')
    throw unusableServer(
      `the database stores text as ${encoding}, which can't represent every name`,
      "Create a database with ENCODING 'UTF8' and TEMPLATE template0.",
    );
  if ('processID' in connection && connection.processID === pid) {
    await connection.query(limited(inSql('SESSION', statementTimeout, version)));
    if (shard !== undefined)
      await connection.query(limited(`SELECT set_config('search_path', '${shard}, ' || current_setting('search_path'), false)`));
    plannedAt.set(connection, performance.now());
    return;
  }
  if (shard !== undefined) throw unusableServer("shards can't be used through a pooler", 'Set DATABASE_URL to the nodes themselves.');
  pooled.set(connection, inSql('LOCAL', statementTimeout, version));
  const { rows: kept } = await send(connection, limited(`SELECT current_setting('synchronous_commit') AS commits`)).catch(
    refuseStatementPooling,
  );
  if (kept[0]?.['commits'] !== 'on')
    throw unusableServer(
      "the pooler in front of PostgreSQL doesn't keep SET LOCAL synchronous_commit = on",
      'Use a pooler that keeps a connection for a whole transaction.',
    );
}

function refuseStatementPooling(error: unknown): never {
  if (!(error instanceof Error && /statement pooling/.test(error.message))) throw error;
  throw unusableServer(
    'the pooler in front of PostgreSQL uses a different connection for each statement, but Callkey needs transactions',
    'Set pool_mode to transaction or session.',
  );
}

type Statement = pg.QueryConfig & { query_timeout?: number };

/** PostgreSQL's translations of ERROR, which ended only a statement, and not the session. It writes them in its own language (`lc_messages`). */
const errorInAnyLanguage = new Set('ERROR FEHLER ERREUR ERRORE ERRO FEL HATA BŁĄD ОШИБКА ПОМИЛКА შეცდომა 오류 错误 錯誤'.split(' '));

/** Makes errors in all languages alike. */
function translateSeverity(error: unknown): void {
  if (error instanceof pg.DatabaseError) error.severity = errorInAnyLanguage.has(error.severity ?? '') ? 'ERROR' : 'FATAL';
}

/**
 * Sends one statement. Behind a pooler, the settings are sent in the same transaction, and the statement isn't named. If a connection
 * doesn't respond, it's closed, because a late response must not be mistaken for the response to the next statement.
 *
 * @param beforeCommit called before anything is sent that may commit. If it throws, nothing is committed
 */
export async function send<Found extends object = Row>(
  connection: pg.Client,
  query: Statement,
  beforeCommit?: () => void,
): Promise<pg.QueryResult<Found>> {
  const deadline = performance.now() + (query.query_timeout ?? timeLimits.statement);
  const sendOne = async (text: string, values?: unknown[], name?: string) => {
    try {
      const config = { text, values, name, query_timeout: Math.max(1, deadline - performance.now()) };
      const result = await connection.query<Found>(config);
      // After a failed statement, PostgreSQL rolls back at COMMIT, and doesn't report an error.
      if (/^COMMIT\b/i.test(text) && result.command !== 'COMMIT')
        throw Object.assign(new pg.DatabaseError('The transaction was rolled back.', 0, 'error'), { severity: 'ERROR' });
      return result;
    } catch (error) {
      translateSeverity(error);
      if (!(error instanceof pg.DatabaseError && error.severity === 'ERROR')) hangUp(connection, error);
      throw error;
    }
  };
  const { text, values, name } = query;
  const ofTheTransaction = pooled.get(connection);
  if (ofTheTransaction === undefined) {
    const now = performance.now();
    if (name !== undefined && now - (plannedAt.get(connection) ?? 0) > planLifetime) {
      plannedAt.set(connection, now);
      await sendOne('DISCARD PLANS');
    }
    beforeCommit?.();
    return sendOne(text, values, name);
  }
  if (connection.getTransactionStatus() !== 'I') return sendOne(text, values);
  if (/^BEGIN\b/i.test(text)) return sendOne(`${text.replace(/;$/, '')}; ${ofTheTransaction}`);
  await sendOne(`BEGIN; ${ofTheTransaction}`);
  try {
    const result = await sendOne(text, values);
    beforeCommit?.();
    await sendOne('COMMIT');
    return result;
  } catch (error) {
    if (connection.getTransactionStatus() !== 'I') await sendOne('ROLLBACK').catch(() => hangUp(connection, error));
    throw error;
  }
}

/** For each connection to a shard, the Knex client that opened it. */
const shardClients = new WeakMap<pg.Client, PostgresClient>();
/** In ms: for how long a shard that didn't respond isn't tried again. Each attempt would tie up one of the few connections of a node. */
const restAfterTimeout = 5_000;

/** Closes a connection immediately, and keeps it out of the pool. */
export function hangUp(connection: pg.Client, why: unknown): void {
  if (why instanceof Error && /timeout/.test(why.message)) shardClients.get(connection)?.rest();
  Object.assign(connection, { __knex__disposed: why });
  connection.end().catch(() => undefined);
}

/** SQLSTATEs that PostgreSQL itself uses in such cases. */
const [readOnly, cannotConnectNow, notInPrerequisiteState] = ['25006', '57P03', '55000'];

function unusableServer(reason: string, remedy: string): UnusableDatabase {
  return new UnusableDatabase(notInPrerequisiteState, reason, remedy);
}

async function requireWritable(connection: pg.Client): Promise<void> {
  const text = `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS refuses`;
  const { rows } = await send(connection, { text, query_timeout: timeLimits.connection });
  if (rows[0]?.['refuses'] !== false)
    throw Object.assign(new Error('None of the hosts accepts writes: the last one tried is a standby or read-only.'), { code: readOnly });
}

/** Closes its socket if signing in fails, for example because no password is set. The driver would leave it open. */
class Connection extends pg.Client {
  override async connect(): Promise<pg.Client> {
    try {
      return await super.connect();
    } catch (error) {
      translateSeverity(error);
      hangUp(this, error);
      throw error;
    }
  }
}

/** The connections on which Citus has warned that a node prepared a transaction, but didn't confirm its commit. */
const unconfirmed = new WeakSet<pg.Client>();

export class PostgresClient extends Client {
  protected statementTimeout = timeLimits.server;
  #addresses: string[] | undefined;
  /** The index of the host that accepted the last connection. The next connection tries it first. */
  #last = 0;

  #restsUntil = 0;

  rest(): void {
    this.#restsUntil = performance.now() + restAfterTimeout;
  }

  override _driver() {
    return { ...pg, Client: Connection };
  }

  override async acquireRawConnection(): Promise<pg.Client> {
    if (performance.now() < this.#restsUntil)
      throw Object.assign(new Error("A node of the database didn't respond."), { code: cannotConnectNow });
    this.#addresses ??= parseAddresses(this.connectionSettings.connectionString);
    const addresses = this.#addresses;
    let failure: unknown;
    for (const [offset] of addresses.entries()) {
      const next = (this.#last + offset) % addresses.length;
      try {
        const connection = await this.#connect(addresses[next] ?? '', addresses.length > 1);
        this.#last = next;
        return connection;
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  async #connect(address: string, mustBeWritable: boolean): Promise<pg.Client> {
    this.connectionSettings.connectionString = address;
    const connection = await super.acquireRawConnection();
    try {
      await setUp(connection, this.statementTimeout, this.config.shard);
      if (mustBeWritable) await requireWritable(connection);
      if (this.config.shard !== undefined) shardClients.set(connection, this);
      // A commit in a shard doesn't wait for all nodes, because a call must not get a 503 due to a node that it doesn't need.
      else connection.on('notice', ({ message }) => message?.startsWith('failed to commit transaction on') && unconfirmed.add(connection));
      return connection;
    } catch (error) {
      hangUp(connection, error);
      throw error;
    }
  }

  override async _query(connection: pg.Client, query: Query): Promise<Query> {
    // Forget a warning about an earlier batch on this connection. Batches don't wait for all nodes, so they leave their warnings here.
    unconfirmed.delete(connection);
    const response = await send(connection, { text: query.sql, values: [...(query.bindings ?? [])], ...query.options });
    if (unconfirmed.delete(connection)) await awaitNodes(connection);
    return Object.assign(query, { response });
  }
}

/** The transactions that nodes have prepared and not committed yet. Fails if a node can't be reached. */
const inDoubt = `SELECT concat(nodeid, ' ', gid) AS id FROM run_command_on_all_nodes($$
    SELECT coalesce(json_agg(gid), '[]') FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE 'citus\\_%'
  $$) AS node CROSS JOIN json_array_elements_text(node.result::json) AS gid`;

/**
 * Waits until all nodes have committed the transactions that were committed on this one. If a node is lost after it has prepared a
 * transaction, the others commit, and this node commits when it's back. Until then, it could still accept a key that was revoked.
 *
 * @throws NotOnAllNodes if a node hasn't committed them in time
 */
export async function awaitNodes(connection: pg.Client): Promise<void> {
  const find = async () => (await send(connection, { text: inDoubt, query_timeout: timeLimits.batch })).rows.map(({ id }) => String(id));
  try {
    const left = await awaitGone(find, timeLimits.batch, () => setTimeout(50));
    if (left.length > 0) throw new Error(`Transactions that nodes prepared but didn't commit in time: ${left.join(', ')}`);
  } catch (cause) {
    throw new NotOnAllNodes('A node has not confirmed a change.', { cause });
  }
}

const queryCanceled = '57014';

/** A client for lists and searches. The server interrupts a statement that takes too long. */
export class PostgresListClient extends PostgresClient {
  protected override statementTimeout = deadlines.statement;

  override async _query(connection: pg.Client, query: Query): Promise<Query> {
    try {
      return await super._query(connection, query);
    } catch (error) {
      throw errorCode(error) === queryCanceled ? new TookTooLong('The statement took too long.', { cause: error }) : error;
    }
  }
}
