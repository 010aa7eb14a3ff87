import type { Knex } from 'knex';
import pg from 'pg';
import type { Database } from '../../core/storage/database.ts';

type Owner = { campaignId: string; accountId: string; keyId: string };

const atOnce = 1_000_000;

/** The numbers from one to another, as a table \`n(i)\`. */
function numbers({ kind }: Database, from: number, to: number): string {
  return kind === 'postgres'
    ? `generate_series(${from}::bigint, ${to}::bigint) AS n(i)`
    : `(WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to}) SELECT i FROM n) AS n`;
}

/** A number in hexadecimal, with leading zeros. */
function hex({ kind }: Database, number: string, width: number): string {
  return kind === 'postgres' ? `lpad(to_hex(${number}), ${width}, '0')` : `printf('%0${width}x', ${number})`;
}

/** Calls that wait to be dialed, with the request ids \`c1\`, \`c2\` and so on. */
export async function makeQueuedCalls(
  database: Database,
  { campaignId, accountId, keyId }: Owner,
  from: number,
  count: number,
): Promise<void> {
  await database.write.raw(
    `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, phone, name, variables, placed_at, due_at)
     SELECT '01a00000-0000-7000-8001-' || ${hex(database, 'i', 12)}, '${campaignId}', '${accountId}', 'c' || CAST(i AS text), '${keyId}',
       'queued', '+493012345678', 'Ada Lovelace', '[["orderNumber","4711"]]', ${Date.now()}, ${Date.now()}
     FROM ${numbers(database, from + 1, from + count)}`,
  );
}

/**
 * Fills the tables with keys of a thousand users and with calls that are over, as they would be after years: quickly, and with digests that
 * are spread over their whole range.
 */
export async function fill(database: Database, url: string, size: number, owner: Owner & { partnerId: string }): Promise<void> {
  await users(database.write, owner);
  const { run, close } =
    database.kind === 'postgres' ? await patientConnection(url) : { run: database.write.raw.bind(database.write), close: undefined };
  for (let from = 1; from <= size; from += atOnce) {
    const to = Math.min(size, from + atOnce - 1);
    await run(keysOf(database, from, to, size, owner));
    await run(callsOf(database, from, to, owner));
  }
  // What autovacuum would have done by now.
  await run(database.kind === 'postgres' ? 'VACUUM ANALYZE' : 'PRAGMA wal_checkpoint(TRUNCATE)');
  await close?.();
}

/** A connection without the time limits of a core's. */
async function patientConnection(url: string): Promise<{ run: (sql: string) => Promise<unknown>; close: () => Promise<void> }> {
  const client = new pg.Client(url);
  await client.connect();
  return { run: (sql) => client.query(sql), close: () => client.end() };
}

async function users(write: Knex, { accountId, partnerId }: Owner & { partnerId: string }): Promise<void> {
  const rows = Array.from({ length: 1_000 }, (_, n) => ({
    ...{ id: `filler-${n}`, email: `filler-${n}@example.com`, name: 'Filler', user_type: 'account', password_hash: '', created_at: 0 },
    ...{ account_id: accountId, partner_id: partnerId },
  }));
  await write.batchInsert('users', rows, 50);
}

function keysOf(
  database: Database,
  from: number,
  to: number,
  size: number,
  { accountId, partnerId }: Owner & { partnerId: string },
): string {
  const spread = `i * ${Math.floor(2 ** 60 / (size + 1))}`;
  const random =
    database.kind === 'postgres' ? `md5(i::text) || substr(md5((-i)::text), 1, 17)` : `substr(lower(hex(randomblob(25))), 1, 49)`;
  return `INSERT INTO api_keys (id, digest, name, creator_id, creator_partner_id, account_id, partner_id, created_at)
    SELECT 'k' || ${hex(database, 'i', 12)}, ${hex(database, spread, 15)} || ${random}, 'Filler', 'filler-' || CAST(i % 1000 AS text), '${partnerId}',
      '${accountId}', '${partnerId}', i
    FROM ${numbers(database, from, to)}`;
}

function callsOf(database: Database, from: number, to: number, { campaignId, accountId }: Owner): string {
  return `INSERT INTO calls (contact_id, campaign_id, account_id, request_id, api_key_id, state, phone, name, variables, placed_at, handoff,
      provider, dialed_at, ended_at, attempt)
    SELECT '01900000-0000-7000-8000-' || ${hex(database, 'i', 12)}, '${campaignId}', '${accountId}', 'f' || CAST(i AS text),
      'k' || ${hex(database, 'i', 12)}, 'completed', '+493012345678', 'Ada Lovelace', '[["orderNumber","4711"]]', i, 'taken', 'webhook', i, i, 1
    FROM ${numbers(database, from, to)}`;
}
