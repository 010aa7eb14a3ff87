import type { Knex } from 'knex';
import type { RevokeOptions } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { inChunks } from './chunks.ts';
import type { Database } from './database.ts';
import { cancelQueued } from './queued-calls.ts';

/**
 * Revokes keys for good: deletes the row with the digest, so that nothing is left that could let the key in again, and keeps what the list of
 * calls shows.
 *
 * @returns the ids of the keys
 */
export async function revokeKeys(
  trx: Knex.Transaction,
  which: { column: 'id' | 'creator_id'; values: readonly string[] },
  options: RevokeOptions,
): Promise<string[]> {
  const keys = () => trx('api_keys').whereIn(which.column, which.values);
  // In one order: two that revoke the same keys then wait for each other instead of deadlocking.
  const ids: string[] = await keys().orderBy('id').forUpdate().pluck('id');
  const at = options.at.toMillis();
  const cancellingSince = options.cancelQueuedCalls ? at : null;
  const columns = ['id', 'name', 'creator_id', 'creator_partner_id', 'account_id', 'partner_id'];
  const creatorName = trx('users').select('name').where('users.id', trx.ref('api_keys.creator_id'));
  const revoked = ['retired_api_keys', ...columns, 'creator_name', 'retired_at', 'cancelling_since'];
  await trx(trx.raw('?? (??, ??, ??, ??, ??, ??, ??, ??, ??)', revoked)).insert(
    keys().select(...columns, creatorName.as('creator_name'), trx.raw('CAST(? AS bigint), CAST(? AS bigint)', [at, cancellingSince])),
  );
  await keys().delete();
  return ids;
}

/**
 * Cancels the queued calls of revoked keys, if the options say so. The keys are marked until then: if this fails or the process dies,
 * housekeeping finishes it.
 *
 * @throws Problem `unavailable` if housekeeping has to finish it
 */
export async function cancelInFlight(database: Database, ids: readonly string[], options: RevokeOptions): Promise<void> {
  if (!options.cancelQueuedCalls) return;
  try {
    await finishCancelling(database, ids, options.at.toMillis());
  } catch (cause) {
    throw new Problem('unavailable', notCancelled, { cause, retryAfter: 60 });
  }
}

const notCancelled =
  'The revoke or deletion is done and stays, but not all queued calls could be cancelled now. The core tries again each minute. Look among the calls whether any is left.';

export async function finishCancelling(database: Database, ids: readonly string[], at: number, signal?: AbortSignal): Promise<number> {
  let changed = 0;
  for (const some of inChunks(ids)) {
    changed += await cancelQueued(database, some, at, signal);
    // A batch that checked the keys before they were deleted may write after it. Once it has ended, no more calls can come.
    if (!(await database.awaitWriters())) throw new Error('A statement that writes calls has not ended in time.');
    changed += await cancelQueued(database, some, at, signal);
    await database.write('retired_api_keys').whereIn('id', some).update({ cancelling_since: null });
  }
  return changed;
}
