import type { Knex } from 'knex';
import { getDialect, inTransaction, isOnShard } from './database.ts';
import type { CallRow } from './tables.ts';

/*
 * Charts count ended calls by the quarter-hour when they were placed. On PostgreSQL, each statement that ends calls also counts them: triggers
 * can't, because Citus doesn't support them on distributed tables. On SQLite, triggers do this, because a statement can't change two tables
 * there, and cancelling in a transaction with two statements was 10% to 25% slower (measured).
 */

/** Adds rows that housekeeping adds up, so that concurrent statements don't wait for each other. */
const count = (state: string) => `INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, placed_at - placed_at % 900000, ${state}, count(*) FROM changed GROUP BY 1, 2, 3`;
/** SQL for the state as which a call with an outcome is counted. It also says who answered a completed call, if that was reported. */
export const countedState = `coalesce(CASE state WHEN 'completed' THEN 'completed by ' || answered_by END, state)`;
/** A call with a late outcome was already counted as `unknown`. */
const countOutcomes = `${count(countedState)}
  UNION ALL SELECT campaign_id, placed_at - placed_at % 900000, 'unknown', -1 FROM changed WHERE late_outcome_at IS NOT NULL`;
/** Only counting needs these columns. They aren't sent, because each slows down every cancel. */
const counted = ['placed_at', 'state', 'late_outcome_at', 'answered_by'];

/** Returns PostgreSQL's statement that ends the same calls, and counts them. */
export function withCount(sql: string): string {
  const columns: readonly string[] = /\bRETURNING ([\w., "]+)$/i.exec(sql)?.[1]?.match(/\w+(?=[" ]*(?:,|$))/g) ?? [];
  const returned = columns.filter((column) => !counted.includes(column));
  const counting = columns.includes('answered_by') ? countOutcomes : count('state');
  return `WITH changed AS (${sql}), counted AS (${counting}) SELECT ${returned} FROM changed`;
}

/**
 * Counts calls that the transaction has ended on one of several nodes. A call must not depend on a node that it doesn't need, and Citus
 * would need all of them for a statement that changes two tables.
 */
export async function countSeparately(trx: Knex.Transaction, ended: readonly object[]): Promise<void> {
  if (ended.length === 0) return;
  const columns = 'campaign_id text, placed_at bigint, state text, late_outcome_at bigint, answered_by text';
  await trx.raw(`WITH changed AS (SELECT * FROM jsonb_to_recordset(?::jsonb) AS c (${columns})) ${countOutcomes}`, [JSON.stringify(ended)]);
}

/** Runs an update that ends calls, and counts these calls. @returns the details of the ended calls */
export async function endCalls(on: Knex, update: Knex.QueryBuilder): Promise<Pick<CallRow, 'detail'>[]> {
  const ending = update.returning(['campaign_id', 'placed_at', 'state', 'detail']);
  if (getDialect(on) === 'sqlite') return ending;
  if (isOnShard(on))
    return inTransaction(on, async (trx) => {
      const ended: Pick<CallRow, 'detail'>[] = await ending.transacting(trx);
      await countSeparately(trx, ended);
      return ended;
    });
  const { sql, bindings } = ending.toSQL();
  const { rows } = await on.raw(withCount(sql), [...bindings]);
  return rows;
}
