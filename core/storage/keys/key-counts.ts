import type { Knex } from 'knex';
import { inChunks } from '../engine/chunks.ts';
import { type Database, getDialect } from '../engine/database.ts';

/** The columns that keys are counted by: see migration 003. */
const scopes = ['creator_id', 'creator_partner_id', 'account_id', 'partner_id'] as const;

/**
 * Adds keys to the stored counts, or removes them. Every transaction that creates, revokes or moves keys must call this while it has locked
 * them. On PostgreSQL, it adds rows, which housekeeping adds up: see migration 003.
 */
export async function countKeyChanges(
  trx: Knex.Transaction,
  ids: readonly string[],
  by: 1 | -1,
  columns: readonly (typeof scopes)[number][] = scopes,
): Promise<void> {
  const merge = getDialect(trx) === 'sqlite' ? 'ON CONFLICT (scope, id) DO UPDATE SET keys = api_key_counts.keys + excluded.keys' : '';
  for (const chunk of inChunks(ids)) {
    const isOne = `id IN (${chunk.map(() => '?')})`;
    const counts = columns.map(
      (column) =>
        `SELECT '${column}', ${column}, ${by} * count(*) FROM api_keys WHERE ${isOne} AND ${column} IS NOT NULL GROUP BY ${column}`,
    );
    const values = columns.flatMap(() => chunk);
    await trx.raw(`INSERT INTO api_key_counts (scope, id, keys) ${counts.join(' UNION ALL ')} ${merge}`, values);
  }
}

/** The stored counts minus the real ones. Both change in the same transaction, so a single statement sees a consistent state. */
const differences = `SELECT scope, id, sum(keys) AS surplus FROM (
    SELECT scope, id, keys FROM api_key_counts
    ${scopes.map((column) => `UNION ALL SELECT '${column}', ${column}, -count(*) FROM api_keys WHERE ${column} IS NOT NULL GROUP BY ${column}`).join(' ')}
  ) AS both_ways GROUP BY scope, id HAVING sum(keys) <> 0`;

/** In ms. Counting millions of keys can take longer than the usual limit for a statement. */
const longTimeout = { query_timeout: 3_600_000 };

/** Returns the number of wrong stored counts. */
export function countWrongCounts(database: Database): Promise<number> {
  return database.read.transaction(async (trx) => {
    await liftTimeLimit(trx, database);
    const counted = await trx
      .from(trx.raw(`(${differences}) AS wrong`))
      .count({ wrong: '*' })
      .first<{ wrong: number | string }>()
      .options(longTimeout);
    return Number(counted.wrong);
  });
}

/** Corrects the counts. Other processes can create and revoke keys while this runs, because that doesn't change the differences. */
export function repairCounts(database: Database): Promise<void> {
  return database.write.transaction(async (trx) => {
    await liftTimeLimit(trx, database);
    // This lock is needed because two repairs at the same time would subtract the same differences twice.
    await database.lockMigrations(trx);
    const merge = database.kind === 'sqlite' ? 'WHERE true ON CONFLICT DO UPDATE SET keys = keys + excluded.keys' : '';
    await trx.raw(`INSERT INTO api_key_counts SELECT scope, id, -surplus FROM (${differences}) AS wrong ${merge}`).options(longTimeout);
  });
}

async function liftTimeLimit(trx: Knex.Transaction, { kind }: Database): Promise<void> {
  if (kind === 'postgres') await trx.raw('SET LOCAL statement_timeout = 0');
}
