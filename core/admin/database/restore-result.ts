import { Problem } from '../../domain/problem.ts';
import { toSchemaState } from '../../storage/migrations/index.ts';

export type RevivedKey = { id: string; name: string; creatorId: string; creatorName: string; revokedAt: number };
export type RevivedUser = { id: string; email: string; name: string; deletedAt: number };
export type EnabledUser = { id: string; email: string; name: string; disabledAt: number };

/** A restore brings back API keys that were revoked, and users who were deleted or disabled, since the backup. */
export type Revived = { apiKeys: RevivedKey[]; users: RevivedUser[]; enabled: EnabledUser[] };

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
  if (!applied.includes('001-core')) throw new Problem('invalid', `${file} isn't a Callkey backup.`);
  return toSchemaState(applied, file).missing;
}
