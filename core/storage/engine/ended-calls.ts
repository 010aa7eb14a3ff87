import type { Knex } from 'knex';
import { getDialect, inTransaction, isOnShard } from './database.ts';

/*
 * Charts count ended calls by the quarter-hour when they were placed. On PostgreSQL, each statement that ends calls also counts them: triggers
 * can't, because Citus doesn't support them on distributed tables. On SQLite, triggers do this, because a statement can't change two tables
 * there, and cancelling in a transaction with two statements was 10% to 25% slower (measured).
 */

/** Adds rows that housekeeping adds up, so that concurrent statements don't wait for each other. */
const count = `INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, placed_at - placed_at % 900000, state, count(*) FROM changed GROUP BY 1, 2, 3`;
/** A call with a late outcome was already counted as `unknown`. */
const takeBack = `UNION ALL SELECT campaign_id, placed_at - placed_at % 900000, 'unknown', -1 FROM changed WHERE late_outcome_at IS NOT NULL`;
/** Only counting needs these columns. They aren't sent, because each slows down every cancel. */
const counted = ['placed_at', 'state', 'late_outcome_at'];

/** Returns PostgreSQL's statement that ends the same calls, and counts them. */
export function withCount(sql: string): string {
  const columns: readonly string[] = /\bRETURNING ([\w., "]+)$/i.exec(sql)?.[1]?.match(/\w+(?=[" ]*(?:,|$))/g) ?? [];
  const returned = columns.filter((column) => !counted.includes(column));
  const counting = columns.includes('late_outcome_at') ? `${count} ${takeBack}` : count;
  return `WITH changed AS (${sql}), counted AS (${counting}) SELECT ${returned} FROM changed`;
}

/**
 * Counts calls that the transaction has ended on one of several nodes. A call must not depend on a node that it doesn't need, and Citus
 * would need all of them for a statement that changes two tables.
 */
export async function countSeparately(trx: Knex.Transaction, ended: readonly object[]): Promise<void> {
  if (ended.length === 0) return;
  const columns = 'campaign_id text, placed_at bigint, state text, late_outcome_at bigint';
  await trx.raw(`WITH changed AS (SELECT * FROM jsonb_to_recordset(?::jsonb) AS c (${columns})) ${count} ${takeBack}`, [
    JSON.stringify(ended),
  ]);
}

/** Runs an update that ends calls, and counts these calls. @returns the number of ended calls */
export async function endCalls(on: Knex, update: Knex.QueryBuilder): Promise<number> {
  if (getDialect(on) === 'sqlite') return update;
  const ending = update.returning(['campaign_id', 'placed_at', 'state']);
  if (isOnShard(on))
    return inTransaction(on, async (trx) => {
      const ended: object[] = await ending.transacting(trx);
      await countSeparately(trx, ended);
      return ended.length;
    });
  const { sql, bindings } = ending.toSQL();
  const { rowCount } = await on.raw(withCount(sql), [...bindings]);
  return rowCount;
}
