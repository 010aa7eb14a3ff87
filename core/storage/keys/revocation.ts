import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { RevokeOptions } from '../../domain/ports.ts';
import { CallsNotCancelled } from '../../domain/problem.ts';
import { cancelQueued, type KeysWithCalls, keysHandingOff } from '../calls/queued-calls.ts';
import { inChunks } from '../engine/chunks.ts';
import type { Database } from '../engine/database.ts';
import { countKeyChanges } from './key-counts.ts';

/**
 * Revokes keys permanently: deletes the rows with their digests, so that the keys can't become valid again, and keeps the data that the
 * list of calls shows.
 *
 * @returns the IDs of the keys
 */
export async function revokeKeys(trx: Knex.Transaction, which: readonly string[], options: RevokeOptions): Promise<string[]> {
  const keys = () => trx('api_keys').whereIn('id', which);
  // Sort the keys, so that two processes that revoke the same keys wait for each other instead of deadlocking.
  const ids: string[] = await keys().orderBy('id').forUpdate().pluck('id');
  const at = options.at;
  const cancellingSince = options.cancelQueuedCalls ? at : null;
  const columns = ['id', 'name', 'creator_id', 'creator_partner_id', 'account_id', 'partner_id'];
  const creatorName = trx('users').select('name').where('users.id', trx.ref('api_keys.creator_id'));
  const revoked = ['revoked_api_keys', ...columns, 'creator_name', 'revoked_at', 'cancelling_since'];
  await trx(trx.raw('?? (??, ??, ??, ??, ??, ??, ??, ??, ??)', revoked)).insert(
    keys().select(...columns, creatorName.as('creator_name'), trx.raw('CAST(? AS bigint), CAST(? AS bigint)', [at, cancellingSince])),
  );
  await countKeyChanges(trx, ids, -1);
  await keys().delete();
  return ids;
}

/**
 * Cancels the queued calls of revoked keys, if the options say so. The keys stay marked until this is done and none of their calls is being
 * handed off. If this fails or the process dies, housekeeping finishes it.
 *
 * @throws CallsNotCancelled if housekeeping has to finish it
 */
export async function cancelInFlight(database: Database, ids: readonly string[], options: RevokeOptions): Promise<void> {
  if (options.cancelQueuedCalls !== true || ids.length === 0) return;
  await orLater(async () => {
    await cancelAll(database, { ids }, options.at);
    await unmark(database, { ids }, ids, options.at);
  });
}

/**
 * Cancels the queued calls of a deleted user who still has keys. The keys are marked when they're revoked, and housekeeping finishes the
 * rest.
 */
export async function cancelDeletedUsersCalls(database: Database, creatorId: string, options: RevokeOptions): Promise<void> {
  if (options.cancelQueuedCalls === true) await orLater(() => cancelAll(database, { creatorId }, options.at));
}

async function orLater(cancel: () => Promise<unknown>): Promise<void> {
  try {
    await cancel();
  } catch (cause) {
    throw new CallsNotCancelled('unavailable', notCancelled, { cause, retryAfter: 60 });
  }
}

const notCancelled =
  "The key was revoked or the user deleted, but some queued calls couldn't be cancelled yet. The core retries every minute. Check the call list for any that remain.";

/** The maximum number of marked keys per pass through the queue. */
const unmarkBatchSize = 10_000;

/** Cancels the queued calls of all keys that are still marked. @returns the number of calls */
export async function finishCancelling(database: Database, at: Millis, signal?: AbortSignal): Promise<number> {
  const marked = database.read('revoked_api_keys').whereNotNull('cancelling_since').orderBy('id').limit(unmarkBatchSize);
  for (let changed = 0, last = ''; ; ) {
    const ids: string[] = await marked.clone().where('id', '>', last).pluck('id');
    const next = ids.at(-1);
    if (next === undefined) return changed;
    changed += await cancelAll(database, 'marked', at, signal);
    await unmark(database, 'marked', ids, at);
    last = next;
  }
}

async function cancelAll(database: Database, keys: KeysWithCalls, at: Millis, signal?: AbortSignal): Promise<number> {
  const before = await cancelQueued(database, keys, at, signal);
  // A batch that checked the keys before they were deleted may still write. Once it has ended, no more calls can be added.
  if (!(await database.awaitWriters())) throw new Error("A statement that writes calls didn't finish in time.");
  return before + (await cancelQueued(database, keys, at, signal));
}

/**
 * Removes the marks. Skips keys for which a dialer is handing off a call, because the dialer checks the mark. Housekeeping tries again
 * later.
 */
async function unmark(database: Database, keys: KeysWithCalls, ids: readonly string[], at: Millis): Promise<void> {
  const handingOff = await keysHandingOff(database, keys, at);
  const done = ids.filter((id) => !handingOff.has(id));
  for (const chunk of inChunks(done)) await database.write('revoked_api_keys').whereIn('id', chunk).update({ cancelling_since: null });
}
