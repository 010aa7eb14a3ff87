import type { Knex } from 'knex';
import pg from 'pg';
import type { Database } from '../../core/storage/engine/database.ts';
import type { DatabaseKind } from '../../test/support/databases.ts';

type Tenancy = { partnerId: string; accountId: string; campaignId: string };

const atOnce = 200_000;

/** The numbers from one to another, as a table \`n(i)\`. */
function numbers(kind: DatabaseKind, from: number, to: number): string {
  return kind === 'postgres'
    ? `generate_series(${from}::bigint, ${to}::bigint) AS n(i)`
    : `(WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to}) SELECT i FROM n) AS n`;
}

/** A number in hexadecimal, with leading zeros. */
function hex(kind: DatabaseKind, number: string, width: number): string {
  return kind === 'postgres' ? `lpad(to_hex(${number}), ${width}, '0')` : `printf('%0${width}x', ${number})`;
}

/** Makes calls that wait to be dialed, with the request ids `c1`, `c2` and so on after the number `from`. */
export async function makeQueuedCalls(
  { kind, write }: Database,
  url: string,
  owner: Omit<Tenancy, 'partnerId'> & { keyId: string },
  from: number,
  count: number,
): Promise<void> {
  const starts = Array.from({ length: Math.ceil(count / atOnce) }, (_, n) => from + n * atOnce + 1);
  const inserts = starts.map((start) => queuedCallsOf(kind, start, Math.min(from + count, start + atOnce - 1), owner));
  // VACUUM is what autovacuum would do in the middle of a round.
  if (kind === 'postgres') await patiently(url, async (query) => runEach(query, [...inserts, 'VACUUM ANALYZE calls', 'CHECKPOINT']));
  else await runEach(write.raw.bind(write), inserts);
}

function queuedCallsOf(
  kind: DatabaseKind,
  from: number,
  to: number,
  { campaignId, accountId, keyId }: Omit<Tenancy, 'partnerId'> & { keyId: string },
): string {
  return `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, phone, name, variables, placed_at, due_at)
     SELECT '01a00000-0000-7000-8001-' || ${hex(kind, 'i', 12)}, '${campaignId}', '${accountId}', 'c' || CAST(i AS text), '${keyId}',
       'queued', '+493012345678', 'Ada Lovelace', '[["orderNumber","4711"]]', ${Date.now()}, ${Date.now()}
     FROM ${numbers(kind, from, to)}`;
}

type Query = (sql: string) => PromiseLike<unknown>;

async function runEach(query: Query, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await query(statement);
}

/** With a connection of its own: a core's limits the time of a statement. */
async function patiently(url: string, work: (query: pg.Client['query']) => Promise<void>): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await work(client.query.bind(client));
  await client.end();
}

/**
 * Fills the tables with keys of a thousand users and with calls that are over, as they would be after years: with digests that are spread
 * over their whole range, and with what the database's triggers keep.
 */
export async function fill(database: Database, url: string, size: number, owner: Tenancy): Promise<void> {
  await users(database.write, owner);
  await (database.kind === 'postgres' ? fillPostgres : fillSqlite)(database, url, size, owner);
}

/** Without the waiting for the disk and the look-ups of foreign keys, until it is full. */
async function fillSqlite({ write }: Database, _url: string, size: number, owner: Tenancy): Promise<void> {
  await write.raw('PRAGMA synchronous = OFF');
  await write.raw('PRAGMA foreign_keys = OFF');
  for (const insert of [...inserts('sqlite', size, keysOf, owner), ...inserts('sqlite', size, callsOf, owner)]) await write.raw(insert);
  await write.raw('PRAGMA foreign_keys = ON');
  await write.raw('PRAGMA synchronous = FULL');
  await write.raw('PRAGMA wal_checkpoint(TRUNCATE)');
}

/** Keys beside calls; without the look-ups of foreign keys, and with the indexes made afterwards, until it is full. */
async function fillPostgres(_database: Database, url: string, size: number, owner: Tenancy): Promise<void> {
  await Promise.all([
    fillTable(url, 'api_keys', inserts('postgres', size, keysOf, owner)),
    fillTable(url, 'calls', inserts('postgres', size, callsOf, owner)),
  ]);
}

function fillTable(url: string, table: string, inserts: readonly string[]): Promise<void> {
  return patiently(url, async (query) => {
    const indexes = await query(
      `SELECT indexrelid::regclass AS name, pg_get_indexdef(indexrelid) AS sql FROM pg_index
       WHERE indrelid = '${table}'::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)`,
    );
    const withoutForeignKeys = [`ALTER TABLE ${table} DISABLE TRIGGER ALL`, `ALTER TABLE ${table} ENABLE TRIGGER USER`];
    await runEach(query, [`SET maintenance_work_mem = '512MB'`, ...withoutForeignKeys]);
    await runEach(query, [...indexes.rows.map(({ name }) => `DROP INDEX ${name}`), ...inserts, ...indexes.rows.map(({ sql }) => sql)]);
    await runEach(query, [`ALTER TABLE ${table} ENABLE TRIGGER ALL`, `VACUUM ANALYZE ${table}`, 'CHECKPOINT']);
  });
}

type InsertOf = (kind: DatabaseKind, from: number, to: number, size: number, owner: Tenancy) => string;

function inserts(kind: DatabaseKind, size: number, insertOf: InsertOf, owner: Tenancy): string[] {
  const starts = Array.from({ length: Math.ceil(size / atOnce) }, (_, n) => n * atOnce + 1);
  return starts.map((from) => insertOf(kind, from, Math.min(size, from + atOnce - 1), size, owner));
}

async function users(write: Knex, { accountId, partnerId }: Tenancy): Promise<void> {
  const rows = Array.from({ length: 1_000 }, (_, n) => ({
    ...{ id: `filler-${n}`, email: `filler-${n}@example.com`, name: 'Filler', user_type: 'account', password_hash: '', created_at: 0 },
    ...{ account_id: accountId, partner_id: partnerId },
  }));
  await write.batchInsert('users', rows, 50);
}

function keysOf(kind: DatabaseKind, from: number, to: number, size: number, { accountId, partnerId }: Tenancy): string {
  const spread = `i * ${Math.floor(2 ** 60 / (size + 1))}`;
  const random = kind === 'postgres' ? `md5(i::text) || substr(md5((-i)::text), 1, 17)` : `substr(lower(hex(randomblob(25))), 1, 49)`;
  return `INSERT INTO api_keys (id, digest, name, creator_id, creator_partner_id, account_id, partner_id, created_at)
    SELECT 'k' || ${hex(kind, 'i', 12)}, ${hex(kind, spread, 15)} || ${random}, 'Filler', 'filler-' || CAST(i % 1000 AS text), '${partnerId}',
      '${accountId}', '${partnerId}', i
    FROM ${numbers(kind, from, to)}`;
}

/** A core would erase the contact data of older calls while it is measured. */
const yesterday = Date.now() - 86_400_000;

function callsOf(kind: DatabaseKind, from: number, to: number, _size: number, { campaignId, accountId }: Tenancy): string {
  return `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, phone, name, variables, placed_at, handoff,
      provider, dialed_at, ended_at, attempt)
    SELECT '01900000-0000-7000-8000-' || ${hex(kind, 'i', 12)}, '${campaignId}', '${accountId}', 'f' || CAST(i AS text),
      'k' || ${hex(kind, 'i', 12)}, 'completed', '+493012345678', 'Ada Lovelace', '[["orderNumber","4711"]]', ${yesterday} + i, 'taken',
      'webhook', ${yesterday} + i, ${yesterday} + i, 1
    FROM ${numbers(kind, from, to)}`;
}
