import type { Knex } from 'knex';
import { cancelledCalls, joinDetail } from '../../domain/audit/audit.ts';
import { Problem } from '../../domain/problem.ts';
import { inChunks } from '../../storage/engine/database.ts';
import type { UserRow } from '../../storage/engine/tables.ts';
import { isOurs, toSchemaState } from '../../storage/migrate.ts';
import { isQueued } from '../../storage/queue/queue.ts';
import { findWidened, type Rights, readRights, type Widened } from './restore-rights.ts';

type RevokedKey = { id: string; name: string; creatorId: string; creatorName: string; revokedAt: number };
/**
 * `callsCancelled`: the key's queued calls were cancelled with it. A revoked key can't place calls. So if none of its calls is queued, each
 * of them was cancelled, or has been dialed and must not be dialed again.
 */
export type RevivedKey = RevokedKey & { reason: string | null; callsCancelled: boolean };
/** `areCallsDue`: the deletion hadn't revoked all of the user's keys yet, and would have cancelled their queued calls. */
type RevivedUser = { id: string; email: string; name: string; deletedAt: number; areCallsDue: boolean };
type EnabledUser = { id: string; email: string; name: string; disabledAt: number };

/** A restore brings back API keys that were revoked, users who were deleted or disabled, and rights that were reduced, since the backup. */
export type Revived = { apiKeys: RevivedKey[]; users: RevivedUser[]; enabled: EnabledUser[]; widened: Widened };

export const nothing: Revived = { apiKeys: [], users: [], enabled: [], widened: { users: [], keys: [] } };

export type RestoreResult = {
  /** Where the replaced database was kept; null if there was no database or it wasn't kept. */
  before: string | null;
  /** Null if the replaced database can't be read. */
  revived: Revived | null;
  /** The migrations that are missing from the backup. */
  missing: string[];
};

/** @param applied a backup's migrations @returns those that it doesn't have yet @throws Problem `invalid` or `conflict` */
export function missingMigrations(applied: readonly string[], file: string): string[] {
  if (!isOurs(applied)) throw new Problem('invalid', `${file} isn't a Callkey backup.`);
  return toSchemaState(applied, file).missing;
}

type Gone = {
  apiKeys: RevivedKey[];
  users: { id: string; deletedAt: number; areCallsDue: boolean }[];
  disabled: { id: string; disabledAt: number }[];
  rights: Rights;
};

/** Reads from the database that will be replaced what happened to keys, their calls, and users. */
export async function readGone(read: Knex): Promise<Gone> {
  const cancelling = async (table: 'revoked_api_keys' | 'users') =>
    new Set<string>(await read(table).whereNotNull('cancelling_since').pluck('id'));
  const [cancellingKeys, cancellingUsers] = [await cancelling('revoked_api_keys'), await cancelling('users')];
  const queued = new Set<string>(await read('calls').distinct().whereNotNull('due_at').whereRaw(isQueued).pluck('api_key_id'));
  const rows: { subject_id: string; detail: string }[] = await read('audit_events')
    .where({ action: 'api-key.revoked' })
    .whereNotNull('detail')
    .select('subject_id', 'detail');
  // Revoking the key again records this again.
  const toReason = (detail: string) => joinDetail(...detail.split('; ').filter((part) => part !== cancelledCalls));
  const reasons = new Map(rows.map(({ subject_id, detail }) => [subject_id, toReason(detail)]));
  const keys: RevokedKey[] = await read('revoked_api_keys')
    .select('id', 'name', 'creator_id as creatorId', 'creator_name as creatorName', 'revoked_at as revokedAt')
    .orderBy(['revoked_at', 'id']);
  // A user with many keys is deleted in batches, and the user's row is deleted last.
  const remaining = () => read('users').whereNull('deleted_at');
  const users: { id: string; deletedAt: number }[] = await read('audit_events')
    .where({ action: 'user.deleted' })
    .whereNotIn('subject_id', remaining().select('id'))
    .groupBy('subject_id')
    .select('subject_id as id', read.raw('max(at) AS "deletedAt"'))
    .orderBy(['deletedAt', 'subject_id']);
  return {
    apiKeys: keys.map((key) => ({
      ...key,
      reason: reasons.get(key.id) ?? null,
      callsCancelled: cancellingKeys.has(key.id) || !queued.has(key.id),
    })),
    users: users.map((user) => ({ ...user, areCallsDue: cancellingUsers.has(user.id) })),
    disabled: await remaining().whereNotNull('disabled_at').orderBy(['disabled_at', 'id']).select('id', 'disabled_at as disabledAt'),
    rights: await readRights(read),
  };
}

/** @param restored selects from a table of the restored database */
export async function findRevived(gone: Gone, restored: (table: string) => Knex.QueryBuilder): Promise<Revived> {
  const find = async <Row extends { id: string }>(table: string, wanted: readonly { id: string }[]) => {
    const found = new Map<string, Row>();
    for (const ids of inChunks(wanted.map(({ id }) => id)))
      for (const row of await restored(table).whereIn('id', ids).select('*')) found.set(row.id, row);
    return found;
  };
  const keys = await find('api_keys', gone.apiKeys);
  const users = await find<UserRow>('users', [...gone.users, ...gone.disabled]);
  const withName = <User extends { id: string }>(user: User) => {
    const row = users.get(user.id);
    return row ? [{ ...user, email: row.email, name: row.name }] : [];
  };
  return {
    apiKeys: gone.apiKeys.filter(({ id }) => keys.has(id)),
    users: gone.users.flatMap(withName),
    enabled: gone.disabled.filter(({ id }) => users.get(id)?.disabled_at === null).flatMap(withName),
    widened: findWidened(gone.rights, await readRights(restored, [...gone.rights.keys.keys()])),
  };
}
