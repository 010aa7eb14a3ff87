import { migrationsTable } from '../migrate.ts';
import type { Lane } from './database.ts';

/**
 * The database's statistics for the metrics. `bytes` has the size of the database and of its write-ahead log (`wal`). PostgreSQL may not
 * report `wal` to this user.
 */
export type DatabaseStats = {
  migrations: number;
  sessions: number;
  /** The time of the last backup, in epoch seconds; 0 if the audit events don't contain one. */
  lastBackup: number;
  bytes: Readonly<Record<string, number>>;
  /** Free bytes on the database's disk; NaN for PostgreSQL. */
  free: number;
};

export async function readDatabaseStats(database: Lane, free: number | null): Promise<DatabaseStats> {
  const [[counted], { database: size, wal }] = await Promise.all([
    // The action is written as text, because the condition of a partial index doesn't match parameters.
    database.query<{ migrations: number; sessions: number; last_backup_at: number | null }>(
      `SELECT (SELECT count(*) FROM ${migrationsTable}) AS migrations, (SELECT count(*) FROM sessions WHERE half_open_until IS NULL) AS sessions,
         (SELECT max(at) FROM audit_events WHERE action = 'backup.created') AS last_backup_at`,
    ),
    database.size(),
  ]);
  if (!counted) throw new Error('A count returned no row.');
  const { migrations, sessions, last_backup_at } = counted;
  return {
    migrations,
    sessions,
    lastBackup: (last_backup_at ?? 0) / 1_000,
    bytes: { database: size, ...(wal === null ? {} : { wal }) },
    free: free ?? Number.NaN,
  };
}
