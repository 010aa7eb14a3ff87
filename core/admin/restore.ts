import type { DatabaseLocation } from '../storage/database.ts';
import { restorePostgres } from './restore-postgres.ts';
import { restoreSqlite } from './restore-sqlite.ts';

export type RevivedKey = { id: string; name: string; creatorId: string; creatorName: string; revokedAt: number };
export type RevivedUser = { id: string; email: string; name: string; deletedAt: number };

/** What a restore brought back to life. */
export type Revived = { apiKeys: RevivedKey[]; users: RevivedUser[] };

export type Restored = {
  /** Where the database is that was there before; null where there was none, or it is not kept. */
  before: string | null;
  /** Null where the database that was there cannot be read. */
  revived: Revived | null;
  /** What the schema of the backup lacks. */
  missing: string[];
};

/**
 * Puts a backup in the place of the database: all of it or nothing, and not while a core runs on it. Sessions are not restored: signing
 * out, or a password reset, would be undone with them.
 */
export function restore(location: DatabaseLocation, file: string, now: Date): Promise<Restored> {
  return location.kind === 'sqlite' ? restoreSqlite(location.filename, file, now) : restorePostgres(location.url, file);
}
