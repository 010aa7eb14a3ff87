import type { Knex } from 'knex';
import { type Millis, oneDay, oneMinute } from '../../domain/instant.ts';
import type { ScopeContactLimits } from '../../domain/model.ts';
import { inCallLanes } from '../engine/call-lanes.ts';
import { inChunks, type Lane } from '../engine/database.ts';
import { isAt } from '../queue/call-stages.ts';

/** SQL: a provider has, had or may have the call. One that a provider refused doesn't count. */
const wasHandedOff = `(dialed_at IS NOT NULL OR state = 'unknown' OR ${isAt('open', 'doubt', 'taken')})`;

/**
 * SQL with one binding, the latest time: when a provider called the number, at the latest. One that may have the call may be calling it
 * now, because its earlier attempts may have been refused.
 */
const handedOffAt = `coalesce(dialed_at, CASE WHEN state = 'dialing' THEN CAST(? AS bigint) ELSE ended_at END)`;

/**
 * Reads when numbers were called, as far as limits count these calls.
 *
 * @param own a transaction in one of the lanes with calls, which also sees what it has changed itself; the others are read through their pools
 * @returns the times of each number, latest first
 */
export async function readContacts(
  database: Lane,
  { limits, counts }: Pick<ScopeContactLimits, 'limits' | 'counts'>,
  phones: readonly string[],
  now: Millis,
  own?: { lane: Lane; trx: Knex },
): Promise<Map<string, Millis[]>> {
  // Not now, which stands for a call of the same claim.
  const latest = now - 1;
  const since = now - Math.max(limits.days * oneDay, limits.minutesBetween * oneMinute);
  const scope = counts.accountId === null ? 'account_id IN (SELECT id FROM accounts WHERE partner_id = ?)' : 'account_id = ?';
  const times = new Map<string, Millis[]>();
  for (const chunk of inChunks(phones)) {
    const rows = await inCallLanes(database, (lane) =>
      lane.query<{ phone: string; at: Millis }>(
        `SELECT phone, ${handedOffAt} AS at FROM calls
         WHERE phone IN (${chunk.map(() => '?')}) AND handoff IS NOT NULL AND ${scope} AND ${wasHandedOff} AND ${handedOffAt} > ?`,
        [latest, ...chunk, counts.accountId ?? counts.partnerId, latest, since],
        own?.lane === lane ? own.trx : undefined,
      ),
    );
    for (const { phone, at } of rows.flat()) times.set(phone, [...(times.get(phone) ?? []), at]);
  }
  for (const each of times.values()) each.sort((a, b) => b - a);
  return times;
}
