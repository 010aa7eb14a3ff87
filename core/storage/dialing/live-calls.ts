import type { Knex } from 'knex';
import type { Condition } from '../engine/conditions.ts';
import type { Lane } from '../engine/database.ts';
import { isAt } from '../queue/call-stages.ts';

/** Returns the SQL for the calls that are being dialed. SQLite would read every call that a campaign ever had instead. */
export const dialingSql = ({ kind }: Lane) => (kind === 'sqlite' ? 'calls INDEXED BY calls_being_dialed' : 'calls');

/** Counts the calls in one lane that a provider has or may have, up to `max`. */
export async function countLive(
  lane: Lane,
  { sql, values }: Condition,
  { max = Number.MAX_SAFE_INTEGER, on }: { max?: number; on?: Knex | undefined } = {},
): Promise<number> {
  const [row] = await lane.query<{ live: number | string }>(
    `SELECT count(*) AS live FROM
     (SELECT 1 FROM ${dialingSql(lane)} WHERE state = 'dialing' AND ${isAt('open', 'doubt', 'taken')} AND ${sql} LIMIT ?) AS live_calls`,
    [...values, max],
    on,
  );
  return Number(row?.live ?? 0);
}
