import type { Knex } from 'knex';
import { getDialect, inTransaction, isOnShard } from '../engine/database.ts';
import { countSeparately } from '../engine/shards.ts';

/*
 * Charts count ended calls by the quarter-hour when they were placed. On PostgreSQL, each statement that ends calls also counts them. On
 * SQLite, triggers do this (migrations 006 and 012), because a statement can't change two tables there, and cancelling in a transaction
 * with two statements was 10% to 25% slower (measured).
 */

/** Runs an update that ends calls, and counts these calls. @returns the number of ended calls */
export async function endCalls(on: Knex, update: Knex.QueryBuilder): Promise<number> {
  if (getDialect(on) === 'sqlite') return update;
  const counted = ['campaign_id', 'placed_at', 'state'];
  if (isOnShard(on))
    return inTransaction(on, async (trx) => {
      const ended: object[] = await update.returning(counted).transacting(trx);
      await countSeparately(trx, ended);
      return ended.length;
    });
  const count = `INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls)
    SELECT campaign_id, placed_at - placed_at % 900000, state, count(*) FROM changed GROUP BY 1, 2, 3`;
  const [row]: { calls: number | string }[] = await on
    .with('changed', update.returning(counted))
    .with('counted', on.raw(count))
    .from('changed')
    .count({ calls: '*' });
  return Number(row?.calls ?? 0);
}
