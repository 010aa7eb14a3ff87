import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { cpus, release, totalmem, type } from 'node:os';
import { dirname } from 'node:path';
import pg from 'pg';
import { makeKeyValue } from '#contract/key-value.ts';
import { revokeApiKeys, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import type { Account, User } from '../../core/domain/model.ts';
import type { Lane } from '../../core/storage/engine/database.ts';
import { createTenants, openDirect } from '../support/direct-database.ts';
import { numbered, type Target, usualSeconds } from './load.ts';
import { type DatabaseKind, freshDatabase, run, startCore, versionOf } from './processes.ts';

/** A core with its own database, valid keys and revoked keys. */
export type Stage = Awaited<ReturnType<typeof openStage>>;

const makeKeys = (count: number) => Array.from({ length: count }, () => makeKeyValue(randomBytes));
/** More calls than a core can cancel in a second. */
const cancelsPerSecond = 80_000;
export const placePath = (campaignId: string) => `/api/v1/campaigns/${campaignId}/contacts/on-demand`;

/** @param size the number of keys in its tables at the start, and also the number of calls */
export async function openStage(kind: DatabaseKind, size = 0) {
  const database = await freshDatabase(kind);
  const { ports, storage } = await openDirect(database);
  const tenants = await createTenants(ports);
  const { account, campaign, partner, users } = tenants;
  /** The owner of the thousand keys' calls. */
  const owner = { accountId: account.id, campaignId: campaign.id, partnerId: partner.id, keyId: `${users.account.id}-0` };
  if (size > 0) await fill(storage.database, database, size, owner);
  const keys = await insertKeys(storage.database, 1_020, users.account, account);
  const ids = keys.map((_, n) => `${users.account.id}-${n}`).slice(1_000);
  const caller = { viewer: { ...users.account, tenancy: null }, actor: operator.actor };
  await revokeApiKeys(ports, caller, { ids, cancelQueuedCalls: false });
  const core = await startCore(database);
  const thousandKeys = keys.slice(0, 1_000);
  const [path, key] = [placePath(campaign.id), keys[0] ?? ''];
  const close = async () => {
    await storage.close();
    await core.stop();
    // Some databases are so large that they must not stay until the end of the run.
    if (kind === 'sqlite') await rm(dirname(database.slice('sqlite:'.length)), { recursive: true });
  };
  let queued = 0;
  return {
    ...{ kind, database, ports, storage, tenants, owner, core, path, key, thousandKeys },
    ...{ keys: keys.slice(0, 10), revoked: keys.slice(1_000), unknown: makeKeys(1_000) },
    /**
     * Prepares a load that cancels calls. Creates the calls of all rounds now, so that the database's cleanup after that doesn't slow down
     * a round.
     *
     * @param server the core to use @param seconds the duration of each round
     */
    async cancelling(rounds: number, server = core, seconds = usualSeconds): Promise<Target> {
      const perRound = seconds * cancelsPerSecond;
      const [from, count] = [queued, (rounds + 1) * perRound];
      queued += count;
      await makeQueuedCalls(storage.database, database, owner, from, count);
      return { ...numbered('cancel', { core: server, path, key }), seconds, from, perRound };
    },
    ...{ close, [Symbol.asyncDispose]: close },
  };
}

/** Inserts a user's keys directly into the table. Each ID is the user's ID and a number from 0. @param more values of other columns */
export async function insertKeys(database: Lane, count: number, creator: User, { id, partnerId }: Account, more = {}) {
  const keys = makeKeys(count);
  const owners = { creator_id: creator.id, creator_partner_id: partnerId, account_id: id, partner_id: partnerId };
  const of = { ...owners, name: 'Bench', created_at: Date.now(), ...more };
  const rows = keys.map((key, n) => ({ id: `${creator.id}-${n}`, digest: toDigest(key), ...of }));
  await database.write.batchInsert('api_keys', rows, 100);
  return keys;
}

/** When, on which machine and at which commit figures were measured. The commit has a note if the working tree had changes. */
export async function describeOrigin() {
  const machine: Record<string, string> & { processor: string } = {
    processor: `${cpus().length} cores of ${cpus()[0]?.model}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${type()} ${release()}`,
    node: `Node.js ${process.versions.node}`,
    load: `${await versionOf('wrk')} on the same machine`,
  };
  const describe = ['describe', '--always', '--exclude=*', '--abbrev=12', '--dirty= with changes'];
  const { stdout } = await run('git', describe).catch(() => ({ stdout: 'unknown' }));
  return { at: new Date().toISOString(), commit: stdout.trim(), machine };
}

export async function databaseVersion({ kind, storage }: Stage): Promise<string> {
  const sql = kind === 'sqlite' ? 'SELECT sqlite_version() AS version' : `SELECT current_setting('server_version') AS version`;
  const [row] = await storage.database.query<{ version: string }>(sql);
  return `${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${row?.version}`;
}

type Tenancy = { partnerId: string; accountId: string; campaignId: string };
type Owner = Tenancy & { keyId: string };

const rowsPerInsert = 200_000;
/** An SQL expression for the last twelve digits of an ID. `i` is the number of the row. */
const twelveDigits = `substr(CAST(1000000000000 + i AS text), 2)`;

/** Builds statements that insert the rows after `from`, many at a time. @param columns SQL expressions, in which `i` is the row's number */
function inserts(table: string, from: number, count: number, columns: Readonly<Record<string, string | number>>): string[] {
  return Array.from({ length: Math.ceil(count / rowsPerInsert) }, (_, n) => {
    const [first, last] = [from + n * rowsPerInsert + 1, from + Math.min(count, (n + 1) * rowsPerInsert)];
    const numbers = `SELECT CAST(${first} AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < ${last}`;
    return `INSERT INTO ${table} (${Object.keys(columns)}) WITH RECURSIVE n(i) AS (${numbers}) SELECT ${Object.values(columns)} FROM n`;
  });
}

function callColumns({ campaignId, accountId }: Tenancy) {
  const contact = { phone: `'+493012345678'`, name: `'Ada Lovelace'`, variables: `'[["orderNumber","4711"]]'` };
  return { campaign_id: `'${campaignId}'`, account_id: `'${accountId}'`, ...contact };
}

/**
 * Runs statements one after the other. On PostgreSQL, uses a separate connection, because a core's connections limit how long a statement
 * can take.
 */
async function runEach({ kind, write }: Lane, url: string, statements: readonly string[]): Promise<void> {
  if (kind === 'sqlite') {
    for (const statement of statements) await write.raw(statement);
    return;
  }
  const client = new pg.Client(url);
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

/** Creates calls that wait to be dialed. Their request IDs are `c1`, `c2` and so on, and start after the number `from`. */
export async function makeQueuedCalls(database: Lane, url: string, owner: Owner, from: number, count: number): Promise<void> {
  const now = Date.now();
  const statements = inserts('calls', from, count, {
    ...{ contact_id: `'01a00000-0000-7000-8001-' || ${twelveDigits}`, request_id: `'c' || CAST(i AS text)` },
    ...{ ...callColumns(owner), api_key_id: `'${owner.keyId}'`, state: `'queued'`, placed_at: now, due_at: now },
  });
  // Cleans up now, because autovacuum would do it in the middle of a round.
  await runEach(database, url, [...statements, ...(database.kind === 'postgres' ? ['VACUUM ANALYZE calls', 'CHECKPOINT'] : [])]);
}

/**
 * Fills the do-not-call lists of an account and of its partner, each with half of the entries. These are spread over the range of numbers
 * that the bench calls, but include none of them.
 */
export async function fillLists(database: Lane, url: string, { accountId, partnerId }: Tenancy, count: number): Promise<void> {
  const step = 8 * Math.max(1, Math.floor(1e7 / count));
  const statements = inserts('do_not_call', 0, count, {
    ...{ id: `'01a00000-0000-7000-8002-' || ${twelveDigits}`, phone: `'+4930' || CAST(10000000 + i * ${step} + 1 AS text)` },
    scope_id: `CASE WHEN i % 2 = 0 THEN '${accountId}' ELSE '${partnerId}' END`,
    account_id: `CASE WHEN i % 2 = 0 THEN '${accountId}' END`,
    ...{ partner_id: `'${partnerId}'`, reason: `'imported'`, source: `'admin'`, created_at: 'i' },
  });
  await fillTable(database, url, 'do_not_call', statements);
  await database.write('accounts').where({ id: accountId }).update({ has_do_not_call: 1 });
  await database.write('partners').where({ id: partnerId }).update({ has_do_not_call: 1, do_not_call_version: 1 });
}

/**
 * Fills the tables with the keys of a thousand users and with ended calls, as they would be after years: digests are spread
 * over their whole range, and the counts of keys are correct.
 */
export async function fill(database: Lane, url: string, size: number, tenancy: Tenancy): Promise<void> {
  const owners = { account_id: tenancy.accountId, partner_id: tenancy.partnerId };
  const user = { name: 'Filler', user_type: 'account', password_hash: '', created_at: 0, ...owners };
  const users = Array.from({ length: 1_000 }, (_, n) => ({ ...user, id: `filler-${n}`, email: `filler-${n}@example.com` }));
  await database.write.batchInsert('users', users, 50);
  // SQLite fills its index of digests faster in their order.
  const position = `i * ${Math.floor(2 ** 60 / (size + 1))}`;
  const start = database.kind === 'postgres' ? `lpad(to_hex(${position}), 15, '0')` : `printf('%015x', ${position})`;
  const keys = inserts('api_keys', 0, size, {
    ...{ id: `'k' || ${twelveDigits}`, digest: `${start} || '${'0'.repeat(49)}'`, name: `'Filler'`, created_at: 'i' },
    ...{ creator_id: `'filler-' || CAST(i % 1000 AS text)`, creator_partner_id: `'${tenancy.partnerId}'` },
    ...{ account_id: `'${tenancy.accountId}'`, partner_id: `'${tenancy.partnerId}'` },
  });
  // A core would erase the contact data of older calls while it's measured.
  const yesterday = `${Date.now() - 86_400_000} + i`;
  const calls = inserts('calls', 0, size, {
    ...{ contact_id: `'01900000-0000-7000-8000-' || ${twelveDigits}`, request_id: `'f' || CAST(i AS text)` },
    ...{ ...callColumns(tenancy), api_key_id: `'k' || ${twelveDigits}`, state: `'completed'`, handoff: `'taken'`, provider: `'webhook'` },
    ...{ placed_at: yesterday, dialed_at: yesterday, ended_at: yesterday, attempt: 1 },
  });
  await fillTable(database, url, 'api_keys', keys);
  await fillTable(database, url, 'calls', calls);
}

/**
 * Fills a table without checking foreign keys. On PostgreSQL, creates the table's indexes only afterwards. On SQLite, doesn't wait for the
 * disk while the table is being filled.
 */
async function fillTable(database: Lane, url: string, table: string, statements: readonly string[]): Promise<void> {
  if (database.kind === 'sqlite') {
    const quickly = ['PRAGMA synchronous = OFF', 'PRAGMA foreign_keys = OFF'];
    const asUsual = ['PRAGMA foreign_keys = ON', 'PRAGMA synchronous = FULL', 'PRAGMA wal_checkpoint(TRUNCATE)'];
    return runEach(database, url, [...quickly, ...statements, ...asUsual]);
  }
  const indexes = await database.query<{ name: string; sql: string }>(
    `SELECT indexrelid::regclass AS name, pg_get_indexdef(indexrelid) AS sql FROM pg_index
     WHERE indrelid = '${table}'::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)`,
  );
  await runEach(database, url, [
    ...[`SET maintenance_work_mem = '512MB'`, `ALTER TABLE ${table} DISABLE TRIGGER ALL`],
    ...indexes.map(({ name }) => `DROP INDEX ${name}`),
    ...statements,
    ...indexes.map(({ sql }) => sql),
    ...[`ALTER TABLE ${table} ENABLE TRIGGER ALL`, `VACUUM ANALYZE ${table}`, 'CHECKPOINT'],
  ]);
}
