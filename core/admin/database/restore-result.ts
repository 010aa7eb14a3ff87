import type { Knex } from 'knex';
import { Problem } from '../../domain/problem.ts';
import { isOurs, toSchemaState } from '../../storage/migrate.ts';
import { isQueued } from '../../storage/queue/call-stages.ts';
import type { Widened } from './restore-rights.ts';

export type RevokedKey = { id: string; name: string; creatorId: string; creatorName: string; revokedAt: number };
export type RevivedKey = RevokedKey & Revocation;
/** `areCallsDue`: the deletion hadn't revoked all of the user's keys yet, and would have cancelled their queued calls. */
export type RevivedUser = { id: string; email: string; name: string; deletedAt: number; areCallsDue: boolean };
export type EnabledUser = { id: string; email: string; name: string; disabledAt: number };

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

/**
 * @param applied the migrations of a backup
 * @returns the migrations that the backup doesn't have yet
 * @throws Problem `invalid` or `conflict`
 */
export function missingMigrations(applied: readonly string[], file: string): string[] {
  if (!isOurs(applied)) throw new Problem('invalid', `${file} isn't a Callkey backup.`);
  return toSchemaState(applied, file).missing;
}

type Revocation = {
  reason: string | null;
  /**
   * Whether the key's queued calls were cancelled with it. A revoked key can't place calls. So if none of its calls is queued, each of them
   * was cancelled, or has been dialed and must not be dialed again.
   */
  callsCancelled: boolean;
};

/** Reads from the database that will be replaced what happened to revoked keys and their calls, and which users are being deleted. */
export async function readRevocations(
  read: Knex,
): Promise<{ describeKey(key: RevokedKey): RevivedKey; areCallsDue(userId: string): boolean }> {
  const cancelling = async (table: 'revoked_api_keys' | 'users') =>
    new Set<string>(await read(table).whereNotNull('cancelling_since').pluck('id'));
  const [cancellingKeys, cancellingUsers] = [await cancelling('revoked_api_keys'), await cancelling('users')];
  const queued = new Set<string>(await read('calls').distinct().whereNotNull('due_at').whereRaw(isQueued).pluck('api_key_id'));
  const rows: { subject_id: string; detail: string }[] = await read('audit_events')
    .where({ action: 'api-key.revoked' })
    .whereNotNull('detail')
    .select('subject_id', 'detail');
  const reasons = new Map(rows.map(({ subject_id, detail }) => [subject_id, detail]));
  return {
    describeKey: (key) => ({
      ...key,
      reason: reasons.get(key.id) ?? null,
      callsCancelled: cancellingKeys.has(key.id) || !queued.has(key.id),
    }),
    areCallsDue: (userId) => cancellingUsers.has(userId),
  };
}
