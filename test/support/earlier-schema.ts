import type { Database } from '../../core/storage/engine/database.ts';
import * as core from '../../core/storage/migrations/001-core.ts';
import * as fewerIndexes from '../../core/storage/migrations/002-fewer-indexes.ts';
import * as keyTallies from '../../core/storage/migrations/003-key-tallies.ts';

/** The migrations that each release had. */
const releases = {
  first: { '001-core': core },
  '0.1.0': { '001-core': core, '002-fewer-indexes': fewerIndexes, '003-key-tallies': keyTallies },
};

/** Migrates an empty database to the schema of an earlier release. */
export async function migrateToRelease({ write, kind }: Database, release: keyof typeof releases): Promise<void> {
  const migrations = Object.entries(releases[release]);
  await write.migrate.latest({
    tableName: 'schema_migrations',
    migrationSource: {
      getMigrations: async () => migrations,
      getMigrationName: ([name]: (typeof migrations)[number]) => name,
      getMigration: async ([, { up }]: (typeof migrations)[number]) => ({
        up: (trx) => up(trx, kind),
        down: () => Promise.reject(new Error('forward only')),
      }),
    },
  });
}
