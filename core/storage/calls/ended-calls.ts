import type { Knex } from 'knex';
import type { CallState } from '#contract/calls/calls.ts';
import { type Count, getDialect, inTransaction, isOnShard } from '../engine/database.ts';
import { countSeparately } from '../engine/shards.ts';

/*
 * Charts count ended calls by the quarter-hour when they were placed. On PostgreSQL, each statement that ends calls also counts them. On
 * SQLite, triggers do this (migrations 006 and 012), because a statement can't change two tables there, and cancelling in a transaction
 * with two statements was 10% to 25% slower (measured).
 */

/** The columns that are needed to count ended calls. */
const counted = ['campaign_id', 'placed_at', 'state'];

const quarterAt = 'placed_at - placed_at % 900000';
const replaced = 'unknown' satisfies CallState;

/**
 * Counts the calls in `changed`. It adds rows, which housekeeping later adds up, so that concurrent statements don't wait for each other.
 */
export const countEnded: Count = {
  reads: counted,
  sql: insertCounts(`SELECT campaign_id, ${quarterAt}, state, count(*) FROM changed GROUP BY 1, 2, 3`),
};

/**
 * Counts calls whose outcome was reported, perhaps late. A call with a late outcome was already counted as `unknown`, so that count is
 * taken back.
 */
export const countTold: Count = {
  reads: [...counted, 'late_outcome_at'],
  sql: insertCounts(
    `SELECT campaign_id, ${quarterAt}, state, 1 FROM changed
     UNION ALL SELECT campaign_id, ${quarterAt}, '${replaced}', -1 FROM changed WHERE late_outcome_at IS NOT NULL`,
  ),
};

function insertCounts(counts: string): string {
  return `INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls) ${counts}`;
}

/** Runs an update that ends calls, and counts these calls. @returns the number of ended calls */
export async function endCalls(on: Knex, update: Knex.QueryBuilder): Promise<number> {
  if (getDialect(on) === 'sqlite') return update;
  const { reads, sql } = countEnded;
  if (isOnShard(on))
    return inTransaction(on, async (trx) => {
      const ended: object[] = await update.returning([...reads]).transacting(trx);
      await countSeparately(trx, countEnded, ended);
      return ended.length;
    });
  const [row]: { calls: number | string }[] = await on
    .with('changed', update.returning([...reads]))
    .with('counted', on.raw(sql))
    .from('changed')
    .count({ calls: '*' });
  return Number(row?.calls ?? 0);
}
