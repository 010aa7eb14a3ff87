import { stagesBefore } from '../../domain/calls/call-states.ts';
import type { Millis } from '../../domain/instant.ts';
import { doNotCallDetail } from '../../domain/protection/judge.ts';
import type { Lane } from '../engine/database.ts';
import { inChunks } from '../engine/database.ts';
import { sumOfShards } from '../engine/shards.ts';
import { endCalls, isAt, stageAfterSql } from '../queue/call-stages.ts';
import { type CallKeyPair, selectAmong, selectBatch, walkQueue } from '../queue/queue.ts';
import { accountsIn } from './lookups.ts';

/** The number of queued calls that one statement reads. */
const lookupBatchSize = 1_000;

type Sweep = { scope_id: string; account_id: string | null; partner_id: string; token: string };

/**
 * Blocks the queued calls to numbers that were added since the last time. A claim would block these calls anyway, but it may be hours until
 * a dialer claims a call, and the list of calls would show it as queued until then.
 */
export async function blockDoNotCall(database: Lane, now: Millis, signal?: AbortSignal): Promise<number> {
  let blocked = 0;
  const sweeps: Sweep[] = await database.read('do_not_call_sweeps').orderBy('scope_id');
  if (sweeps.length === 0) return 0;
  // Wait for batches that may be placing calls without seeing the new entries.
  await database.awaitWriters();
  for (const { scope_id, account_id, partner_id, token } of sweeps) {
    for await (const account of accountsIn(database, { accountId: account_id, partnerId: partner_id }))
      blocked += await sumOfShards(database, (shard) => blockInAccount(shard, account, now, signal));
    // If numbers were added in the meantime, the token has changed, and the next run starts again.
    await database.write('do_not_call_sweeps').where({ scope_id, token }).delete();
  }
  return blocked;
}

/** Blocks an account's waiting calls, except those that a dialer is claiming right now: the claim itself blocks them. */
async function blockInAccount(database: Lane, accountId: string, now: Millis, signal: AbortSignal | undefined): Promise<number> {
  const { write } = database;
  const isBlockable = `${isAt(...stagesBefore('block'))} AND ${isCallListed(String(now))}`;
  const columns = { state: write.raw(stageAfterSql('block')), ended_at: now, due_at: null, detail: doNotCallDetail };
  let blocked = 0;
  for await (const rows of walkQueue(database, { flag: isBlockable, accountId, size: lookupBatchSize, signal })) {
    for (const chunk of inChunks(rows.filter(({ flag }) => flag))) {
      const keys = chunk.map((row): CallKeyPair => [row.campaign_id, row.contact_id]);
      const listed = selectAmong(write, keys).whereRaw(isBlockable);
      blocked += await endCalls(write, selectBatch(write, listed, keys.length).update(columns));
    }
  }
  return blocked;
}

/** SQL: the number of a row of `calls` is on a list: the same condition as in dialing/claim.*.sql. @param at the SQL of the time */
function isCallListed(at: string): string {
  const listing = 'CASE WHEN a.has_do_not_call IS NOT NULL OR p.has_do_not_call IS NOT NULL THEN p.id END';
  return `(SELECT 1 FROM accounts a CROSS JOIN partners p WHERE a.id = calls.account_id AND p.id = a.partner_id
    AND ${listing} IS NOT NULL AND (SELECT 1 FROM do_not_call d WHERE d.partner_id = ${listing} AND d.phone = calls.phone
      AND (d.account_id IS NULL OR d.account_id = a.id) AND (d.ends_at IS NULL OR d.ends_at >= ${at}) LIMIT 1) IS NOT NULL) IS NOT NULL`;
}
