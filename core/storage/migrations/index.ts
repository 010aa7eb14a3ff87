import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import { Problem } from '../../domain/problem.ts';
import type { Database } from '../database.ts';
import { isLocked } from '../errors.ts';
import * as core from './001-core.ts';
import * as fewerIndexes from './002-fewer-indexes.ts';
import * as keyTallies from './003-key-tallies.ts';
import * as staffKeysSeen from './004-staff-keys-seen.ts';
import * as unfinishedCancels from './005-unfinished-cancels.ts';

export type Dialect = Database['kind'];

/** In their order, and only ever added to: a released migration stays as it is. */
const migrations: readonly { name: string; up: (trx: Knex, dialect: Dialect) => Promise<void> }[] = [
  { name: '001-core', up: core.up },
  { name: '002-fewer-indexes', up: fewerIndexes.up },
  { name: '003-key-tallies', up: keyTallies.up },
  { name: '004-staff-keys-seen', up: staffKeysSeen.up },
  { name: '005-unfinished-cancels', up: unfinishedCancels.up },
];

const tableName = 'schema_migrations';
/** In ms: as long as migrations of a large database took, and then some. */
const patience = 300_000;

/**
 * Brings the schema up to date, in one transaction and under a lock: of several cores that start at once, one does it and the others
 * wait; a core that is killed on the way leaves nothing behind.
 *
 * @param signal gives up, and leaves the schema as it was
 * @returns the names of the migrations that were applied
 * @throws Problem `conflict` when the database is newer than this program
 */
export async function migrate(database: Database, signal?: AbortSignal): Promise<string[]> {
  for (const started = performance.now(); ; ) {
    // Most starts find nothing to do, and need no lock for it.
    if ((await schemaState(database)).missing.length === 0) return [];
    try {
      return await applyMissing(database, signal);
    } catch (error) {
      // On SQLite, another core's migration takes longer than a statement may wait.
      if (!isLocked(error) || performance.now() - started > patience) throw error;
      await setTimeout(100, undefined, signal && { signal });
    }
  }
}

function applyMissing(database: Database, signal: AbortSignal | undefined): Promise<string[]> {
  return database.write.transaction(async (trx) => {
    await database.lockMigrations(trx, signal);
    await refuseNewer(trx);
    const [, applied]: [number, string[]] = await trx.migrate.latest({
      tableName,
      migrationSource: {
        getMigrations: async () => migrations.map(({ name }) => name),
        getMigrationName: (name: string) => name,
        getMigration: async (wanted: string) => {
          const migration = migrations.find(({ name }) => name === wanted);
          if (!migration) throw new Error(`There is no migration ${wanted}.`);
          return {
            up: (inner: Knex) => migration.up(inner, database.kind),
            down: () => Promise.reject(new Error('Migrations only go forward.')),
          };
        },
      },
    });
    return applied;
  });
}

async function refuseNewer(trx: Knex.Transaction): Promise<void> {
  if (await trx.schema.hasTable(tableName)) schemaOf(await trx(tableName).pluck('name'));
}

/** What this program's schema has that a database does not. */
export type SchemaState = { isEmpty: boolean; missing: string[] };

/** @throws Problem `conflict` when the database is newer than this program */
export async function schemaState({ read }: Database): Promise<SchemaState> {
  return schemaOf((await read.schema.hasTable(tableName)) ? await read(tableName).pluck('name') : []);
}

/** @throws Problem `conflict` */
export function schemaOf(applied: readonly string[], what = 'The database'): SchemaState {
  const names = migrations.map(({ name }) => name);
  const unknown = applied.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    throw new Problem('conflict', `${what} is newer than this program (it has ${unknown.join(', ')}). Run the newer version.`);
  }
  return { isEmpty: applied.length === 0, missing: names.filter((name) => !applied.includes(name)) };
}

/** Whether every migration that this program knows has been applied. */
export async function isMigrated(database: Database): Promise<boolean> {
  const rows: { name: string }[] = await database.read(tableName).select('name');
  const applied = new Set(rows.map(({ name }) => name));
  return migrations.every(({ name }) => applied.has(name));
}
