import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import { Problem } from '../domain/problem.ts';
import type { Database, Dialect } from './engine/database.ts';
import { isLocked } from './engine/errors.ts';
import { shardSchema } from './engine/shards.ts';
import * as core from './migrations/001-core.ts';
import * as fewerIndexes from './migrations/002-fewer-indexes.ts';
import * as keyTallies from './migrations/003-key-tallies.ts';
import * as staffKeysSeen from './migrations/004-staff-keys-seen.ts';
import * as unfinishedCancels from './migrations/005-unfinished-cancels.ts';
import * as useAndOutcomes from './migrations/006-use-and-outcomes.ts';
import * as oneIndexOfTheQueue from './migrations/007-one-index-of-the-queue.ts';
import * as disabledUsers from './migrations/008-disabled-users.ts';
import * as auditChain from './migrations/009-audit-chain.ts';
import * as deletedUsers from './migrations/010-deleted-users-additive.ts';
import * as clock from './migrations/011-clock-additive.ts';
import * as lateOutcomes from './migrations/012-late-outcomes-additive.ts';
import * as recordedRetention from './migrations/013-recorded-retention-additive.ts';
import * as activityFilters from './migrations/014-activity-filters-additive.ts';
import * as movingKeys from './migrations/015-moving-keys-additive.ts';
import * as protection from './migrations/016-protection.ts';
import * as providerSignIn from './migrations/017-provider-sign-in-additive.ts';
import * as keyLimits from './migrations/018-key-limits.ts';
import * as secondFactors from './migrations/019-second-factors.ts';
import * as keyAddresses from './migrations/020-key-addresses-additive.ts';
import * as listFilters from './migrations/021-list-filters-additive.ts';
import * as numberImports from './migrations/022-number-imports-additive.ts';
import * as listVersions from './migrations/023-list-versions.ts';
import * as countsInStatements from './migrations/024-counts-in-statements.ts';
import * as callsByKey from './migrations/030-calls-by-key-additive.ts';
import * as retentionSinceDialing from './migrations/031-retention-since-dialing-additive.ts';
import * as subjectsOfCodes from './migrations/032-subjects-of-codes-additive.ts';
import * as changedHours from './migrations/033-changed-hours-additive.ts';
import * as directImports from './migrations/041-direct-imports.ts';
import * as retentionSinceReport from './migrations/042-retention-since-report.ts';
import * as signInVersions from './migrations/043-sign-in-versions.ts';
import * as canonicalEmails from './migrations/045-canonical-emails.ts';
import * as plainNames from './migrations/046-plain-names.ts';

type Step = (trx: Knex, dialect: Dialect) => Promise<void>;
/** @property upCalls changes only the tables of calls. If they're divided into shards, it runs once in each */
type Migration = { name: string } & ({ up: Step; upCalls?: Step } | { up?: undefined; upCalls: Step });

/**
 * The migrations, in order. Never change a released migration; add a new one instead. If cores of the previous release keep working with
 * the new schema, end its name in `-additive`. There never were migrations 025 to 029, 034 to 040, and 044.
 */
const migrations: readonly Migration[] = [
  { name: '001-core', up: core.up },
  { name: '002-fewer-indexes', up: fewerIndexes.up },
  { name: '003-key-tallies', up: keyTallies.up },
  { name: '004-staff-keys-seen', up: staffKeysSeen.up },
  { name: '005-unfinished-cancels', up: unfinishedCancels.up },
  { name: '006-use-and-outcomes', up: useAndOutcomes.up },
  { name: '007-one-index-of-the-queue', up: oneIndexOfTheQueue.up },
  { name: '008-disabled-users', up: disabledUsers.up },
  { name: '009-audit-chain', up: auditChain.up },
  { name: '010-deleted-users-additive', up: deletedUsers.up },
  { name: '011-clock-additive', up: clock.up },
  { name: '012-late-outcomes-additive', up: lateOutcomes.up },
  { name: '013-recorded-retention-additive', up: recordedRetention.up },
  { name: '014-activity-filters-additive', up: activityFilters.up },
  { name: '015-moving-keys-additive', up: movingKeys.up },
  { name: '016-protection', up: protection.up },
  { name: '017-provider-sign-in-additive', up: providerSignIn.up },
  { name: '018-key-limits', up: keyLimits.up },
  { name: '019-second-factors', up: secondFactors.up },
  { name: '020-key-addresses-additive', up: keyAddresses.up },
  { name: '021-list-filters-additive', up: listFilters.up },
  { name: '022-number-imports-additive', up: numberImports.up },
  { name: '023-list-versions', up: listVersions.up },
  { name: '024-counts-in-statements', up: countsInStatements.up },
  { name: '030-calls-by-key-additive', upCalls: callsByKey.upCalls },
  { name: '031-retention-since-dialing-additive', upCalls: retentionSinceDialing.upCalls },
  { name: '032-subjects-of-codes-additive', up: subjectsOfCodes.up },
  { name: '033-changed-hours-additive', up: changedHours.up },
  { name: '041-direct-imports', up: directImports.up },
  { name: '042-retention-since-report', upCalls: retentionSinceReport.upCalls },
  { name: '043-sign-in-versions', up: signInVersions.up },
  { name: '045-canonical-emails', up: canonicalEmails.up },
  { name: '046-plain-names', up: plainNames.up, upCalls: plainNames.upCalls },
];

export const migrationsTable = 'schema_migrations';
/** In ms. The maximum wait for another core's migration. It's longer than the migration of a large database took. */
const maxWait = 300_000;

/** The names of the migrations that were applied now, and of migrations that a newer program has added. */
export type Migrated = { applied: string[]; added: string[] };

/**
 * Updates the schema in one transaction, with a lock, so that if several cores start at the same time, one migrates and the others wait. If
 * a core is killed during a migration, nothing changes.
 *
 * @param signal cancels it, and leaves the schema unchanged
 * @throws Problem `conflict` if the database is newer than this program
 */
export async function migrate(database: Database, signal?: AbortSignal): Promise<Migrated> {
  for (const started = performance.now(); ; ) {
    // Check without the lock, because most starts find nothing missing.
    const { missing, added } = await schemaState(database);
    if (missing.length === 0) return { applied: [], added };
    try {
      return { applied: await applyMissing(database, signal), added };
    } catch (error) {
      // On SQLite, another core's migration may take longer than a statement waits for the lock, so try again.
      if (!isLocked(error) || performance.now() - started > maxWait) throw error;
      await setTimeout(100, undefined, signal && { signal });
    }
  }
}

function applyMissing(database: Database, signal: AbortSignal | undefined): Promise<string[]> {
  return database.write.transaction(async (trx) => {
    await database.lockMigrations(trx, signal);
    await refuseNewer(trx);
    const shards = database.shards().length;
    const recorded = shards === 0 ? [] : [shardsName(shards)];
    const [, applied]: [number, string[]] = await trx.migrate.latest({
      tableName: migrationsTable,
      migrationSource: {
        getMigrations: async () => [...recorded, ...migrations.map(({ name }) => name)],
        getMigrationName: (name: string) => name,
        getMigration: async (requested: string) => {
          const migration = migrations.find(({ name }) => name === requested);
          if (!migration) throw new Error(`The migration ${requested} doesn't exist.`);
          return {
            up: (inner: Knex) => run(migration, inner, database),
            down: () => Promise.reject(new Error("Migrations can't be undone.")),
          };
        },
      },
    });
    return applied;
  });
}

async function run({ up, upCalls }: Migration, trx: Knex, { kind, shards }: Database): Promise<void> {
  await up?.(trx, kind);
  if (!upCalls) return;
  const schemas = shards().map((_, number) => shardSchema(number));
  if (schemas.length === 0) return upCalls(trx, kind);
  await trx.raw(`SELECT set_config('callkey.search_path', current_setting('search_path'), true)`);
  for (const schema of schemas) {
    await trx.raw(`SELECT set_config('search_path', concat(?::text, ', ', current_setting('callkey.search_path')), true)`, [schema]);
    await upCalls(trx, kind);
  }
  await trx.raw(`SELECT set_config('search_path', current_setting('callkey.search_path'), true)`);
}

/**
 * If the tables of calls are divided into shards, the number of shards is recorded like a migration, so that a release that doesn't support
 * shards refuses the database.
 */
export function shardsName(count: number): string {
  return `shards-${count}`;
}

function countShards(applied: readonly string[]): number {
  return applied.reduce((count, name) => Number(/^shards-(\d+)$/.exec(name)?.[1] ?? count), 0);
}

async function refuseNewer(trx: Knex.Transaction): Promise<void> {
  if (!(await trx.schema.hasTable(migrationsTable))) return;
  const applied: string[] = await trx(migrationsTable).pluck('name');
  toSchemaState(applied.filter((name) => name !== shardsName(countShards(applied))));
}

/** The migrations that a database's schema is missing, and migrations that a newer program has added to it. */
export type SchemaState = { isEmpty: boolean; missing: string[]; added: string[] };

/** @throws Problem `conflict` if the database is newer than this program */
export async function schemaState(database: Database): Promise<SchemaState> {
  const applied: string[] = (await hasMigrations(database)) ? await database.read(migrationsTable).pluck('name') : [];
  const shards = countShards(applied);
  if (shards > 0) database.useShards(shards);
  return toSchemaState(applied.filter((name) => name !== shardsName(shards)));
}

async function hasMigrations({ kind, read, query }: Database): Promise<boolean> {
  if (kind === 'sqlite') return read.schema.hasTable(migrationsTable);
  // On PostgreSQL, knex would read information_schema, which would add 10 ms to each start.
  const [row] = await query<{ found: boolean }>(
    `SELECT to_regclass(quote_ident(current_schema()) || '.${migrationsTable}') IS NOT NULL AS found`,
  );
  return row?.found ?? false;
}

/** @throws Problem `conflict` */
export function toSchemaState(applied: readonly string[], what = 'The database'): SchemaState {
  const names = migrations.map(({ name }) => name);
  const newer = applied.filter((name) => !names.includes(name));
  const added = newer.filter((name) => name.endsWith('-additive'));
  if (newer.length > added.length) {
    throw new Problem(
      'conflict',
      `${what} was migrated by a newer version of Callkey (migrations: ${newer.join(', ')}). Use that version or a later one.`,
    );
  }
  return { isEmpty: applied.length === 0, missing: names.filter((name) => !applied.includes(name)), added };
}

/** @throws Error if the calls were divided into shards after the core had started, because its statements don't use the shards yet */
export async function isMigrated(database: Database): Promise<boolean> {
  const rows: { name: string }[] = await database.read(migrationsTable).select('name');
  const applied = rows.map(({ name }) => name);
  if (countShards(applied) !== database.shards().length)
    throw new Error('The calls were divided into shards after this core had started. Restart it.');
  return migrations.every(({ name }) => applied.includes(name));
}
