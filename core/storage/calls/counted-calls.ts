import type { Knex } from 'knex';
import { type BatchRows, type Database, selectList } from '../engine/database.ts';
import { isAllowed, joinAuthorization, keyOfRequest } from '../keys/authorization.ts';
import { callsToPlace, groupColumnsWith, newCall } from './placing.ts';

/** SQL: the number of calls that the request's key has placed on the request's day. */
export const placedToday = `coalesce((SELECT d.placed FROM api_key_days d WHERE d.api_key_id = k.id AND d.day = r.day), 0)`;

export type DayOfKey = readonly [digest: string, day: string];

/** Reads how many calls keys have placed on days. */
export async function readPlaced(database: Database, days: readonly DayOfKey[], on = database.read) {
  const rows = database.batchRows({ digest: 'text', day: 'text' });
  const sql = `SELECT r.digest, r.day, d.placed FROM ${rows} CROSS JOIN ${keyOfRequest[database.kind]} CROSS JOIN api_key_days d
     WHERE k.digest = r.digest AND d.api_key_id = k.id AND d.day = r.day`;
  const found =
    days.length === 0 ? [] : await database.query<{ digest: string; day: string; placed: number }>(sql, [JSON.stringify(days)], on);
  const placed = new Map(found.map((row) => [`${row.digest} ${row.day}`, row.placed]));
  return ([digest, day]: DayOfKey = ['', '']) => placed.get(`${digest} ${day}`) ?? 0;
}

/** Adds the day's count to each group of calls. A group's first value is the digest, and its last two are the day and the calls. */
async function withPlaced(database: Database, batch: BatchRows, trx: Knex.Transaction): Promise<BatchRows> {
  const days = batch.map((group): DayOfKey => [String(group[0]), String(group.at(-2))]);
  const placed = await readPlaced(database, days, trx);
  return batch.map((group, n) => group.toSpliced(-1, 0, placed(days[n])));
}

type Inserted = { api_key_id: string; day: string; contact_id: string };

/**
 * Returns a function that inserts calls of keys with a daily call limit, and counts them, in one transaction. It inserts a key's calls only
 * up to the limit. Repeats don't count. Calls of keys without a limit don't use this, because it takes three statements instead of one.
 *
 * @returns for each contact ID of an inserted call, how many calls its key has placed on that day
 */
export function countedInserter(database: Database) {
  // The counts may be on a different node from a shard's calls, so with shards they're read first and passed as a parameter.
  const columns = { day: 'text' } as const;
  const groups = database.batchRows(groupColumnsWith(database.isShard ? { ...columns, placed: 'bigint' } : columns));
  const select = { day: 'r.day', calls_per_day: 'k.calls_per_day', placed: database.isShard ? 'r.placed' : placedToday };
  const names = Object.keys(newCall);
  // This lock keeps two cores that place calls of a key at the same time from seeing the same count. SQLite has only one writer anyway.
  const lock = `INSERT INTO api_key_days (api_key_id, day, placed)
     SELECT DISTINCT k.id, r.day, 0 FROM ${database.batchRows(groupColumnsWith(columns))} ${joinAuthorization(database)} WHERE ${isAllowed} ORDER BY 1, 2
     ON CONFLICT (api_key_id, day) DO UPDATE SET placed = api_key_days.placed`;
  const insert = `INSERT INTO calls (${names})
     SELECT ${names} FROM (
       SELECT ${selectList(newCall)}, r.calls_per_day, r.placed,
         row_number() OVER (PARTITION BY r.api_key_id, r.day ORDER BY r.contact_id) AS nth
       FROM ${callsToPlace(database, groups, select)}
         AND NOT EXISTS (SELECT 1 FROM calls x WHERE x.campaign_id = r.campaign_id AND x.request_id = r.request_id)
     ) AS candidates
     WHERE placed + nth <= calls_per_day
     ON CONFLICT (campaign_id, request_id) DO NOTHING
     RETURNING contact_id, api_key_id`;
  const count = `INSERT INTO api_key_days (api_key_id, day, placed)
     SELECT r.api_key_id, r.day, r.placed FROM ${database.batchRows({ api_key_id: 'text', day: 'text', placed: 'bigint' })} WHERE true
     ON CONFLICT (api_key_id, day) DO UPDATE SET placed = api_key_days.placed + excluded.placed
     RETURNING api_key_id, day, placed`;

  /** @param batch groups with their day @param days the day of each contact ID */
  return (batch: BatchRows, days: ReadonlyMap<string, string>, beforeCommit: () => void) =>
    database.write.transaction(async (trx): Promise<Map<string, number>> => {
      beforeCommit();
      const json = JSON.stringify(batch);
      if (database.kind === 'postgres') await database.query(lock, [json], trx);
      const counted = database.isShard ? JSON.stringify(await withPlaced(database, batch, trx)) : json;
      const inserted = await database.query<Omit<Inserted, 'day'>>(insert, [counted], trx);
      return countInserted(
        trx,
        inserted.map((row) => ({ ...row, day: days.get(row.contact_id) ?? '' })),
      );
    });

  async function countInserted(trx: Knex.Transaction, inserted: readonly Inserted[]): Promise<Map<string, number>> {
    if (inserted.length === 0) return new Map();
    const groups = [...Map.groupBy(inserted, ({ api_key_id, day }) => `${api_key_id} ${day}`).values()];
    const added = groups.map((group) => [group[0]?.api_key_id, group[0]?.day, group.length]);
    type Counted = { api_key_id: string; day: string; placed: number };
    const counts = await database.query<Counted>(count, [JSON.stringify(added)], trx);
    const placed = new Map(counts.map((row) => [`${row.api_key_id} ${row.day}`, row.placed]));
    return new Map(inserted.map(({ contact_id, api_key_id, day }) => [contact_id, placed.get(`${api_key_id} ${day}`) ?? 0]));
  }
}
