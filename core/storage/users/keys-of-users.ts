import type { Knex } from 'knex';
import { eachDespiteErrors } from '../../domain/each-despite-errors.ts';
import type { AuditEvent, TargetUser } from '../../domain/model.ts';
import type { RevokeOptions } from '../../domain/ports.ts';
import { endProofs } from '../audit/audit.ts';
import { inShortTransactions } from '../engine/chunks.ts';
import { required } from '../engine/columns.ts';
import type { Lane } from '../engine/database.ts';
import type { ApiKeyRow, UserRow } from '../engine/tables.ts';
import { revokeKeys } from '../keys/api-keys.ts';

/** The number of keys that are changed in the same transaction as the user. By default, a user can't have more active keys than this. */
export const keysPerTransaction = 1_000;
/**
 * The number of keys that each later transaction changes. It's smaller, because another process that wants to write to SQLite has to poll
 * for its lock. Such a transaction takes about 10 ms.
 */
const keysPerStep = 200;

export function selectUndeleted(trx: Knex.Transaction, id: string): Knex.QueryBuilder<UserRow, UserRow[]> {
  return trx('users').where({ id, deleted_at: null });
}

/** Locks a user that's to be changed. @returns whether the user is as expected: see `TargetUser` */
export async function lockTarget(trx: Knex.Transaction, { id, signInVersion }: TargetUser): Promise<boolean> {
  const unchanged = signInVersion === undefined ? {} : { sign_in_version: signInVersion };
  return (await selectUndeleted(trx, id).where(unchanged).forUpdate().first('id')) !== undefined;
}

/**
 * Revokes the newest keys of a deleted user, so that lists no longer have to skip them, and deletes the user's row along with the last
 * ones. The row must be locked, so that the user can't create more keys.
 *
 * @param max the maximum number of keys. A million in one transaction would block all other SQLite writers for a minute
 * @returns the IDs of the keys
 */
export async function deleteStep(
  database: Lane,
  trx: Knex.Transaction,
  id: string,
  max: number,
  options: RevokeOptions,
): Promise<string[]> {
  const revoked = await revokeKeys(database, trx, await selectNewestKeys(trx, id, max).pluck('id'), options);
  if (revoked.length < max) await trx('users').where({ id }).delete();
  return revoked;
}

/** Finishes deleting users. @throws the error of the first deletion that failed, after trying the others */
export async function finishDeletions(database: Lane, signal: AbortSignal): Promise<number> {
  const { read, write } = database;
  const ids: string[] = await read('users').whereNotNull('deleted_at').pluck('id');
  let revoked = 0;
  await eachDespiteErrors(ids, signal, async (id) => {
    const step = async (size: number) => {
      const batch = await write.transaction((trx) => continueDeleting(database, trx, id, size));
      revoked += batch;
      return batch;
    };
    await inShortTransactions(step, keysPerStep, signal);
  });
  return revoked;
}

async function continueDeleting(database: Lane, trx: Knex.Transaction, id: string, max: number): Promise<number> {
  // Lock the user's row, because another core may be deleting the same user's keys.
  const user = await trx('users').where({ id }).forUpdate().first('deleted_at', 'cancelling_since');
  if (user === undefined) return 0;
  const options = { cancelQueuedCalls: user.cancelling_since !== null, at: required(user.deleted_at, 'deleted_at') };
  return (await deleteStep(database, trx, id, max, options)).length;
}

/**
 * Changes a user. If the user moves to another partner, that partner is also recorded with their keys: with the newest ones in the same
 * transaction, and with the others in batches, because changing a million rows at once would block all other SQLite writers for a minute.
 *
 * The move still takes effect immediately: a key's access is read from its creator in each request (authorization.ts), and so is the right
 * to see a key that's looked up by ID. Only lists use the recorded partner. The new partner's list shows the newest keys, which already
 * have it; the old partner's list skips the user's keys while `moving_keys` is set.
 *
 * A user who gets another type, place or email address loses their sessions.
 *
 * @param event its ID is unique, so that a step of an earlier move detects this one
 * @param before the values that the user must still have
 * @returns the number of ended sessions; null if the user doesn't exist, or has other values
 */
export async function updateUser(
  trx: Knex.Transaction,
  id: string,
  columns: Readonly<Record<string, string | number | null>> & { partner_id: string | null },
  event: AuditEvent,
  before: Partial<UserRow> = {},
): Promise<number | null> {
  // This lock keeps the user from creating keys until the transaction ends.
  const user: Readonly<Record<string, unknown>> | undefined = await selectUndeleted(trx, id).where(before).forNoKeyUpdate().first();
  if (user === undefined) return null;
  const isRename = Object.entries(columns).every(([column, value]) => column === 'name' || user[column] === value);
  await trx('users').where({ id }).update(columns);
  const sessions = isRename ? 0 : await endProofs(trx, id, event);
  if (user['partner_id'] === columns.partner_id) return sessions;
  const newest: string[] = await selectNewestKeys(trx, id, keysPerTransaction).pluck('id');
  await recordPartner(trx, newest, columns.partner_id);
  await trx('users')
    .where({ id })
    .update({ moving_keys: newest.length < keysPerTransaction ? null : event.id });
  return sessions;
}

type Moving = Pick<UserRow, 'id' | 'partner_id' | 'moving_keys'>;

/**
 * Finishes moving users' keys.
 *
 * @returns the number of keys
 * @throws the error of the first move that failed, after trying the others
 */
export async function finishMoves(database: Lane, signal: AbortSignal): Promise<number> {
  const users: Moving[] = await database.read('users').whereNotNull('moving_keys').select('id', 'partner_id', 'moving_keys');
  let moved = 0;
  await eachDespiteErrors(users, signal, async (user) => {
    moved += await finishMove(database, user, signal);
  });
  return moved;
}

/** Moves a user's keys, from the newest to the oldest. Keys that an earlier run has moved are only read. */
async function finishMove({ read, write }: Lane, user: Moving, signal: AbortSignal): Promise<number> {
  const { id, partner_id: partnerId, moving_keys } = user;
  let last: KeyPosition | undefined;
  let moved = 0;
  const step = async (size: number) => {
    const keys: MovingKey[] = await selectNewestKeys(read, id, size, last).select('id', 'created_at', 'partner_id', 'creator_partner_id');
    const left = keys.filter((key) => key.creator_partner_id !== (partnerId ?? key.partner_id)).map((key) => key.id);
    const isLast = keys.length < size;
    if (left.length > 0 || isLast) {
      const isDone = await write.transaction(async (trx) => {
        // If the user was moved again or deleted, that change takes care of the keys.
        const same = await trx('users').where({ id, moving_keys }).forNoKeyUpdate().first('id');
        if (same === undefined) return false;
        await recordPartner(trx, left, partnerId);
        if (isLast) await trx('users').where({ id }).update({ moving_keys: null });
        return true;
      });
      if (!isDone) return 0;
    }
    moved += left.length;
    last = keys.at(-1);
    return keys.length;
  };
  await inShortTransactions(step, keysPerStep, signal);
  return moved;
}

type KeyPosition = Pick<ApiKeyRow, 'id' | 'created_at'>;
type MovingKey = KeyPosition & Pick<ApiKeyRow, 'partner_id' | 'creator_partner_id'>;

/** Selects a user's newest keys. @param olderThan the last key of the previous step */
function selectNewestKeys(from: Knex, userId: string, max: number, olderThan?: KeyPosition): Knex.QueryBuilder {
  const newest = from('api_keys')
    .where({ creator_id: userId })
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(max);
  return olderThan ? newest.whereRaw('(created_at, id) < (?, ?)', [olderThan.created_at, olderThan.id]) : newest;
}

/** Records the new partner of a user's keys. Keys of a user who became staff stay with the partner for which they were created. */
async function recordPartner(trx: Knex.Transaction, ids: string[], partnerId: string | null): Promise<void> {
  const keys = () => trx('api_keys').whereIn('id', ids);
  // Lock the keys in order, because someone may be revoking them.
  await keys().orderBy('id').forNoKeyUpdate().pluck('id');
  await keys().update({ creator_partner_id: partnerId ?? trx.ref('partner_id') });
}
