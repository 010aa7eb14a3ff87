import { eachDespiteErrors } from '../../domain/each-despite-errors.ts';
import type { Millis } from '../../domain/instant.ts';
import { type Lane, requireSeen } from '../engine/database.ts';
import { sumOfShards } from '../engine/shards.ts';
import { markHeldDue } from '../queue/queue.ts';
import { accountsIn } from './lookups.ts';

type ChangedScope = { scope_id: string; campaign_id: string | null; account_id: string | null; partner_id: string; hours_changed: string };

/**
 * Makes held calls due in scopes whose calling hours have changed since the last time. A claim then applies the new hours, and may hold a
 * call again. Otherwise, a call would wait until the previous hours open, and could lapse although the new ones are open.
 */
export async function makeHeldDue(database: Lane, now: Millis, signal: AbortSignal): Promise<number> {
  const scopes = await database.query<ChangedScope>(
    `SELECT r.scope_id, c.id AS campaign_id, a.id AS account_id, r.partner_id, r.hours_changed
     FROM protection_rules r LEFT JOIN campaigns c ON c.id = r.scope_id LEFT JOIN accounts a ON a.id = coalesce(c.account_id, r.scope_id)
     WHERE r.hours_changed IS NOT NULL ORDER BY r.scope_id`,
    [],
  );
  if (scopes.length === 0) return 0;
  // Wait for batches and claims that may be holding calls because of the previous hours.
  await requireSeen(database);
  let due = 0;
  await eachDespiteErrors(scopes, signal, async (scope) => {
    const { scope_id, campaign_id: campaignId, account_id, partner_id, hours_changed } = scope;
    for await (const accountId of accountsIn(database, { accountId: account_id, partnerId: partner_id }))
      due += await sumOfShards(database, (shard) => markHeldDue(shard, now, { accountId, campaignId }, signal));
    // If the hours were changed again in the meantime, the next run starts again.
    await database.write('protection_rules').where({ scope_id, hours_changed }).update({ hours_changed: null });
  });
  return due;
}
