import type { Knex } from 'knex';
import type { AuditEvent, KeyLimits } from '../../domain/model.ts';
import type { Today } from '../../domain/ports.ts';
import { recordAudit } from '../audit/audit.ts';
import { type Database, type Dialect, type Row, requireSeen } from '../engine/database.ts';
import { sumOfShards } from '../engine/shards.ts';

/** SQL: the version and the limits of a key named `k`. There are only two columns, because each column takes time in every row. */
export function limitColumns(kind: Dialect): string {
  const columns = ['addresses', 'calls_per_day', 'time_zone', 'expiry_time_zone'].map((column) => `'${column}', k.${column}`).join(', ');
  const json = { sqlite: `json_object(${columns})`, postgres: `json_build_object(${columns})::text` }[kind];
  return `k.limits_version, CASE WHEN k.limits_version IS NOT NULL THEN ${json} END AS limits`;
}

/** Returns a key's time zone. Keys that don't expire, and were created before time zones were recorded, don't have their own. */
export function effectiveTimeZone(row: { time_zone: unknown; expiry_time_zone: unknown }): string {
  return String(row.time_zone ?? row.expiry_time_zone ?? 'UTC');
}

/** Remembers limits by version, so that each version is read and parsed only once. */
export function knownLimits() {
  const known = new Map<string, KeyLimits>();
  return {
    /** @returns undefined if the limits of this version have to be read first */
    get: (version: Row[string] | undefined): KeyLimits | null | undefined => (typeof version === 'string' ? known.get(version) : null),
    /** Returns the limits in a row with {@link limitColumns}: the same object for the same version. */
    read({ limits_version: version, limits: json }: Row): KeyLimits | null {
      if (typeof version !== 'string') return null;
      const seen = known.get(version);
      if (seen) return seen;
      const limits = parseLimits(version, JSON.parse(String(json)));
      if (known.size >= maxKnown) known.clear();
      known.set(version, limits);
      return limits;
    },
  };
}

export type KnownLimits = ReturnType<typeof knownLimits>;

const maxKnown = 10_000;

export function parseLimits(version: string, row: Row): KeyLimits {
  const { addresses, calls_per_day: callsPerDay, time_zone, expiry_time_zone } = row;
  return {
    version,
    addresses: typeof addresses === 'string' ? JSON.parse(addresses) : null,
    callsPerDay: callsPerDay == null ? null : Number(callsPerDay),
    timeZone: effectiveTimeZone({ time_zone, expiry_time_zone }),
  };
}

/** See `ApiKeyStore.limit`. */
export async function limitKey(
  database: Database,
  id: string,
  before: string | null,
  after: KeyLimits | null,
  today: Today,
  event: AuditEvent,
): Promise<boolean> {
  const { read, write } = database;
  const key = await read('api_keys').where({ id, limits_version: before }).first('calls_per_day');
  const startsCounting = key?.calls_per_day === null && after?.callsPerDay != null;
  // Count the older calls first, without a lock, so that no one waits while a million calls are read.
  const older = startsCounting ? await countOlder(database, id, today) : 0;
  const isChanged = await write.transaction(async (trx) => {
    const columns = {
      limits_version: after?.version ?? null,
      addresses: after?.addresses ? JSON.stringify(after.addresses) : null,
      calls_per_day: after?.callsPerDay ?? null,
    };
    if ((await trx('api_keys').where({ id, limits_version: before }).update(columns)) === 0) return false;
    await recordAudit(trx, event);
    if (startsCounting) await countToday(database, id, today, older, trx);
    return true;
  });
  if (isChanged && startsCounting) await finishCounting(database, id, today, older);
  return isChanged;
}

/** See `ApiKeyStore.recount`. */
export async function recountKey(database: Database, id: string, today: Today): Promise<void> {
  await finishCounting(database, id, today, await countOlder(database, id, today));
}

/** Counts once more, because a batch that started before the change may have placed calls without counting them. */
async function finishCounting(database: Database, id: string, today: Today, older: number): Promise<void> {
  await requireSeen(database);
  await database.write.transaction((trx) => countToday(database, id, today, older, trx));
}

/** Counts the calls that a key has placed since the day began, because they weren't counted while it had no limit. */
async function countToday(database: Database, id: string, today: Today, older: number, trx: Knex.Transaction): Promise<void> {
  const row = { api_key_id: id, day: today.day };
  // Lock the row, as every batch that counts calls does.
  await trx('api_key_days')
    .insert({ ...row, placed: 0 })
    .onConflict(['api_key_id', 'day'])
    .merge(['api_key_id']);
  const recent = await countCalls(database, id, today, today.recentId, lastId, trx);
  await trx('api_key_days')
    .where(row)
    .update({ placed: older + recent });
}

/** Counts the calls of each quarter-hour separately, because a whole day's calls may be too many for one statement. */
async function countOlder(database: Database, id: string, today: Today): Promise<number> {
  const { ids, recentId } = today;
  let placed = 0;
  for (const [n, first] of ids.entries()) placed += await countCalls(database, id, today, first, ids[n + 1] ?? recentId);
  return placed;
}

/** Sorts after every ID. */
const lastId = 'z';

/**
 * Counts the calls of a key's day with IDs from `fromId` to `beforeId`. Doesn't count a call that was placed while the clock was ahead,
 * which belongs to a later day. Calls that haven't ended have no index by key, so this reads all calls of the campaigns that the key may
 * have used.
 */
function countCalls(
  database: Database,
  id: string,
  { from, before }: Today,
  fromId: string,
  beforeId: string,
  on: Knex = database.read,
): Promise<number> {
  return sumOfShards(database, async (shard) => {
    const [row] = await shard.query<{ placed: number | string }>(
      `SELECT count(*) AS placed FROM api_keys k CROSS JOIN accounts a CROSS JOIN campaigns c CROSS JOIN calls
     WHERE k.id = ? AND a.partner_id IN (k.partner_id, k.creator_partner_id) AND c.account_id = a.id AND calls.campaign_id = c.id
       AND calls.contact_id >= ? AND calls.contact_id < ? AND calls.api_key_id = k.id
       AND calls.placed_at >= ? AND calls.placed_at < ?`,
      [id, fromId, beforeId, from, before],
      shard.isShard ? shard.read : on,
    );
    return Number(row?.placed ?? 0);
  });
}
