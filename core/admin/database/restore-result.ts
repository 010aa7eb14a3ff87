import { Problem } from '../../domain/problem.ts';
import { schemaOf } from '../../storage/migrations/index.ts';

export type RevivedKey = { id: string; name: string; creatorId: string; creatorName: string; revokedAt: number };
export type RevivedUser = { id: string; email: string; name: string; deletedAt: number };
export type EnabledUser = { id: string; email: string; name: string; disabledAt: number };

/** The API keys that were revoked, and the users who were deleted or disabled since the backup: a restore brings them back. */
export type Revived = { apiKeys: RevivedKey[]; users: RevivedUser[]; enabled: EnabledUser[] };

export type RestoreResult = {
  /** Where the replaced database is now; null where there was none, or it is not kept. */
  before: string | null;
  /** Null where the replaced database cannot be read. */
  revived: Revived | null;
  /** The migrations that the backup lacks. */
  missing: string[];
};

/**
 * @param applied the migrations of a backup
 * @returns those that it lacks
 * @throws Problem `invalid` or `conflict`
 */
export function missingMigrations(applied: readonly string[], file: string): string[] {
  if (!applied.includes('001-core')) throw new Problem('invalid', `${file} isn't a Callkey backup.`);
  return schemaOf(applied, file).missing;
}
