import type { Dialect } from '../../engine/database.ts';

/**
 * Builds the SQL for a summary. Ended calls come from the stored counts. Open calls are counted directly, in the index of due calls. It's a
 * single statement, because a call may end between two statements. The concatenation keeps PostgreSQL from also reading the campaign's ten
 * million calls in another index (measured on a table without statistics).
 */
export function summarySql(tables: readonly string[]): string {
  const ended = tables.map((table) => `SELECT quarter_at, state, calls FROM ${table} WHERE campaign_id = ? AND quarter_at >= ?`);
  const open = `SELECT placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls FROM calls
    WHERE account_id = (SELECT account_id FROM campaigns WHERE id = ?) AND due_at IS NOT NULL AND (campaign_id || '') = ? AND placed_at >= ?
    GROUP BY 1, 2`;
  return [...ended, open].join(' UNION ALL ');
}

/**
 * Builds the SQL for a summary of several campaigns. The database adds up the quarter-hours of each day, because twenty campaigns have
 * hundreds of thousands of rows. Each day of each campaign is one range of the primary key, grouped only by state. Grouping all rows at
 * once takes seven times as long on PostgreSQL, and three times as long on SQLite.
 */
export function summaryOfAll(kind: Dialect, campaigns: number, days: number): string {
  const bounds = Array(days).fill('(CAST(? AS bigint), CAST(? AS bigint))').join(', ');
  const ofDay = `SELECT t.state, sum(t.calls) AS calls FROM call_counts t
    WHERE t.campaign_id = s.id AND t.quarter_at >= d.from_at AND t.quarter_at < d.until_at GROUP BY t.state`;
  // SQLite has no lateral joins, but its table functions can be joined like that.
  const ended =
    kind === 'postgres'
      ? `SELECT s.id AS campaign_id, d.from_at AS quarter_at, t.state, CAST(t.calls AS bigint) AS calls
         FROM days d CROSS JOIN scope s CROSS JOIN LATERAL (${ofDay}) AS t`
      : `SELECT s.id AS campaign_id, d.from_at AS quarter_at, t.key AS state, t.value AS calls
         FROM days d CROSS JOIN scope s CROSS JOIN json_each((SELECT json_group_object(state, calls) FROM (${ofDay}))) AS t`;
  // This table has no index, because housekeeping keeps it short.
  const changes = `SELECT t.campaign_id, d.from_at AS quarter_at, t.state, CAST(sum(t.calls) AS bigint) AS calls
    FROM call_count_changes t JOIN scope s ON t.campaign_id = s.id JOIN days d ON t.quarter_at >= d.from_at AND t.quarter_at < d.until_at
    GROUP BY 1, 2, 3`;
  const open = `SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, state, count(*) AS calls FROM calls
    WHERE account_id IN (SELECT account_id FROM scope) AND due_at IS NOT NULL AND (campaign_id || '') IN (SELECT id FROM scope) AND placed_at >= ?
    GROUP BY 1, 2, 3`;
  const scope = `SELECT id, account_id FROM campaigns WHERE id IN (${Array(campaigns).fill('?')})`;
  const parts = [ended, ...(kind === 'postgres' ? [changes] : []), open];
  return `WITH days (from_at, until_at) AS (VALUES ${bounds}), scope AS (${scope}) ${parts.join(' UNION ALL ')}`;
}

/** Two compactions at the same time are harmless, because each adds up only the rows that it has deleted itself. */
export const compaction = `WITH moved AS (DELETE FROM call_count_changes RETURNING campaign_id, quarter_at, state, calls)
  INSERT INTO call_counts (campaign_id, quarter_at, state, calls)
  SELECT campaign_id, quarter_at, state, sum(calls) FROM moved GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (campaign_id, quarter_at, state) DO UPDATE SET calls = call_counts.calls + excluded.calls`;
