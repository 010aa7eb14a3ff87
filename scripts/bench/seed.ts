import type { Knex } from 'knex';
import pg from 'pg';
import type { Database } from '../../core/storage/engine/database.ts';
import { repairCounts } from '../../core/storage/keys/key-counts.ts';

type Tenancy = { partnerId: string; accountId: string; campaignId: string };
type Query = (sql: string) => PromiseLike<unknown>;
/** Builds the statement that inserts the rows whose numbers come from `numbers`, a table expression named `n(i)`. */
type BuildInsert = (numbers: string, hex: (number: string, width: number) => string) => string;

const rowsPerInsert = 200_000;

/** Builds the statements that insert the rows after `from`, many at a time. */
function inserts({ kind }: Database, from: number, count: number, buildInsert: BuildInsert): string[] {
  const hex = (number: string, width: number) =>
    kind === 'postgres' ? `lpad(to_hex(${number}), ${width}, '0')` : `printf('%0${width}x', ${number})`;
  return Array.from({ length: Math.ceil(count / rowsPerInsert) }, (_, n) => {
    const [first, last] = [from + n * rowsPerInsert + 1, from + Math.min(count, (n + 1) * rowsPerInsert)];
    const series = `(WITH RECURSIVE n(i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i < ${last}) SELECT i FROM n) AS n`;
    return buildInsert(kind === 'postgres' ? `generate_series(${first}::bigint, ${last}::bigint) AS n(i)` : series, hex);
  });
}

async function runEach(query: Query, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await query(statement);
}

/** Uses a separate connection, because a core's connections limit how long a statement can take. */
async function patiently(url: string, work: (query: pg.Client['query']) => Promise<void>): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await work(client.query.bind(client));
  await client.end();
}

type Owner = Tenancy & { keyId: string };

/** Creates calls that wait to be dialed. Their request IDs are `c1`, `c2` and so on, and start after the number `from`. */
export async function makeQueuedCalls(database: Database, url: string, owner: Owner, from: number, count: number): Promise<void> {
  const { campaignId, accountId, keyId } = owner;
  const now = Date.now();
  const statements = inserts(database, from, count, (numbers, hex) => {
    return `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, phone, name, variables, placed_at, due_at)
       SELECT '01a00000-0000-7000-8001-' || ${hex('i', 12)}, '${campaignId}', '${accountId}', 'c' || CAST(i AS text), '${keyId}',
         'queued', '+493012345678', 'Ada Lovelace', '[["orderNumber","4711"]]', ${now}, ${now}
       FROM ${numbers}`;
  });
  // Cleans up now, because autovacuum would do it in the middle of a round.
  if (database.kind === 'postgres') await patiently(url, (query) => runEach(query, [...statements, 'VACUUM ANALYZE calls', 'CHECKPOINT']));
  else await runEach(database.write.raw.bind(database.write), statements);
}

/**
 * Fills the do-not-call lists of an account and of its partner, each with half of the entries. These are spread over the range of numbers
 * that the bench calls, but include none of them.
 */
export async function fillLists(database: Database, url: string, { accountId, partnerId }: Tenancy, count: number): Promise<void> {
  const { kind, write } = database;
  const step = 8 * Math.max(1, Math.floor(1e7 / count));
  const statements = inserts(database, 0, count, (numbers, hex) => {
    return `INSERT INTO do_not_call (id, scope_id, phone, account_id, partner_id, reason, source, created_at)
       SELECT '01a00000-0000-7000-8002-' || ${hex('i', 12)}, CASE WHEN i % 2 = 0 THEN '${accountId}' ELSE '${partnerId}' END,
         '+4930' || CAST(10000000 + i * ${step} + 1 AS text), CASE WHEN i % 2 = 0 THEN '${accountId}' END, '${partnerId}', 'imported', 'admin', i
       FROM ${numbers}`;
  });
  if (kind === 'postgres') await fillTable(url, 'do_not_call', statements);
  else await runEach(write.raw.bind(write), [...statements, 'PRAGMA wal_checkpoint(TRUNCATE)']);
  await write('accounts').where({ id: accountId }).update({ lists_numbers: 1 });
  await write('partners').where({ id: partnerId }).update({ lists_numbers: 1, lists_version: 1 });
}

/**
 * Fills the tables with the keys of a thousand users and with ended calls, as they would be after years: digests are spread
 * over their whole range, and the counts of keys are correct.
 */
export async function fill(database: Database, url: string, size: number, { accountId, partnerId, campaignId }: Tenancy): Promise<void> {
  const { kind, write } = database;
  await addUsers(write, accountId, partnerId);
  const random = kind === 'postgres' ? `md5(i::text) || substr(md5((-i)::text), 1, 17)` : `substr(lower(hex(randomblob(25))), 1, 49)`;
  const keys = inserts(database, 0, size, (numbers, hex) => {
    return `INSERT INTO api_keys (id, digest, name, creator_id, creator_partner_id, account_id, partner_id, created_at)
       SELECT 'k' || ${hex('i', 12)}, ${hex(`i * ${Math.floor(2 ** 60 / (size + 1))}`, 15)} || ${random}, 'Filler',
         'filler-' || CAST(i % 1000 AS text), '${partnerId}', '${accountId}', '${partnerId}', i
       FROM ${numbers}`;
  });
  // A core would erase the contact data of older calls while it's measured.
  const yesterday = Date.now() - 86_400_000;
  const calls = inserts(database, 0, size, (numbers, hex) => {
    return `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, phone, name, variables, placed_at, handoff,
         provider, dialed_at, ended_at, attempt)
       SELECT '01900000-0000-7000-8000-' || ${hex('i', 12)}, '${campaignId}', '${accountId}', 'f' || CAST(i AS text), 'k' || ${hex('i', 12)},
         'completed', '+493012345678', 'Ada Lovelace', '[["orderNumber","4711"]]', ${yesterday} + i, 'taken', 'webhook',
         ${yesterday} + i, ${yesterday} + i, 1
       FROM ${numbers}`;
  });
  if (kind === 'postgres') await Promise.all([fillTable(url, 'api_keys', keys), fillTable(url, 'calls', calls)]);
  else {
    // Until the database is filled, SQLite doesn't wait for the disk or check foreign keys.
    const quickly = ['PRAGMA synchronous = OFF', 'PRAGMA foreign_keys = OFF'];
    const asUsual = ['PRAGMA foreign_keys = ON', 'PRAGMA synchronous = FULL', 'PRAGMA wal_checkpoint(TRUNCATE)'];
    await runEach(write.raw.bind(write), [...quickly, ...keys, ...calls, ...asUsual]);
  }
  await repairCounts(database);
}

/** Fills a table without checking foreign keys, and creates its indexes afterwards. */
function fillTable(url: string, table: string, statements: readonly string[]): Promise<void> {
  return patiently(url, async (query) => {
    const { rows: indexes } = await query(
      `SELECT indexrelid::regclass AS name, pg_get_indexdef(indexrelid) AS sql FROM pg_index
       WHERE indrelid = '${table}'::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)`,
    );
    const withoutForeignKeys = `ALTER TABLE ${table} DISABLE TRIGGER ALL`;
    await runEach(query, [`SET maintenance_work_mem = '512MB'`, withoutForeignKeys, ...indexes.map(({ name }) => `DROP INDEX ${name}`)]);
    await runEach(query, [...statements, ...indexes.map(({ sql }) => sql)]);
    await runEach(query, [`ALTER TABLE ${table} ENABLE TRIGGER ALL`, `VACUUM ANALYZE ${table}`, 'CHECKPOINT']);
  });
}

async function addUsers(write: Knex, accountId: string, partnerId: string): Promise<void> {
  const rows = Array.from({ length: 1_000 }, (_, n) => ({
    ...{ id: `filler-${n}`, email: `filler-${n}@example.com`, name: 'Filler', user_type: 'account', password_hash: '', created_at: 0 },
    ...{ account_id: accountId, partner_id: partnerId },
  }));
  await write.batchInsert('users', rows, 50);
}
