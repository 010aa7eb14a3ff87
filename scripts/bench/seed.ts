import pg from 'pg';
import type { Database } from '../../core/storage/engine/database.ts';

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
async function runEach({ kind, write }: Database, url: string, statements: readonly string[]): Promise<void> {
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
export async function makeQueuedCalls(database: Database, url: string, owner: Owner, from: number, count: number): Promise<void> {
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
export async function fillLists(database: Database, url: string, { accountId, partnerId }: Tenancy, count: number): Promise<void> {
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
export async function fill(database: Database, url: string, size: number, tenancy: Tenancy): Promise<void> {
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
async function fillTable(database: Database, url: string, table: string, statements: readonly string[]): Promise<void> {
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
