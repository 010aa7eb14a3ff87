import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import { errorCode, Problem } from '../domain/problem.ts';
import { shardSchema, shardsName } from './engine/call-lanes.ts';
import { type Dialect, getDialect, type Lane, readSql } from './engine/database.ts';
import { explainDatabaseError, isLocked, UnusableDatabase } from './engine/errors.ts';
import { migrationsTable } from './engine/tables.ts';

type Step = (trx: Knex.Transaction, dialect: Dialect) => Promise<void>;
/** @property upCalls changes only the tables of calls. If they're divided into shards, it runs once in each */
type Migration = { name: string; up?: Step; upCalls?: Step };

/** In order. Never change a released migration; add a new one instead. */
const migrations: readonly Migration[] = [{ name: '001-schema', up: createSchema }];

/** In ms. The maximum wait for another core's migration. It's longer than the migration of a large database took. */
const maxWait = 300_000;

const insufficientPrivilege = '42501';
const ownerMigrates = 'Migrate as the role that owns the tables, or make this one the owner of the database.';

/**
 * Updates the schema in one transaction, with a lock, so that if several cores start at the same time, one migrates and the others wait. If
 * a core is killed during a migration, nothing changes.
 *
 * @param signal cancels it, and leaves the schema unchanged
 * @returns the names of the migrations that were applied now
 * @throws Problem `conflict` if the database is newer than this program, or too old
 */
export async function migrate(database: Lane, signal?: AbortSignal): Promise<string[]> {
  for (const started = performance.now(); ; ) {
    // Check without the lock, because most starts find nothing missing.
    if ((await schemaState(database)).missing.length === 0) return [];
    try {
      return await applyMissing(database, signal);
    } catch (error) {
      // With two roles, the core's own must not get the right that it lacks.
      if (errorCode(error) === insufficientPrivilege)
        throw new UnusableDatabase(insufficientPrivilege, explainDatabaseError(error)?.cause ?? '', ownerMigrates);
      // On SQLite, another core's migration may take longer than a statement waits for the lock, so try again.
      if (!isLocked(error) || performance.now() - started > maxWait) throw error;
      await setTimeout(100, undefined, signal && { signal });
    }
  }
}

function applyMissing(database: Lane, signal: AbortSignal | undefined): Promise<string[]> {
  return database.write.transaction(async (trx) => {
    await database.lockMigrations(trx, signal);
    const applied = await readApplied(database, trx);
    const { missing } = toSchemaState(applied);
    if (isUnreleased(applied)) {
      await run(unreleased, trx, database);
      return missing;
    }
    for (const migration of migrations) {
      if (!missing.includes(migration.name)) continue;
      await run(migration, trx, database);
      await trx(migrationsTable).insert({ name: migration.name });
    }
    return missing;
  });
}

async function run({ up, upCalls }: Omit<Migration, 'name'>, trx: Knex.Transaction, { kind, shards }: Lane): Promise<void> {
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

async function createSchema(trx: Knex.Transaction, dialect: Dialect): Promise<void> {
  for (const statement of readStatements(dialect)) await trx.raw(statement);
}

/** What's different on each database in schema.sql. */
const schemaParts = {
  sqlite: { id: 'text', latest: 'max', includeCalls: '' },
  postgres: { id: 'text COLLATE "C"', latest: 'greatest', includeCalls: ' INCLUDE (calls)' },
} as const;
/** The tables that SQLite stores in the order of their keys. */
const ordered = ['api_key_usage', 'api_key_days', 'api_key_addresses', 'call_counts'];

function readStatements(dialect: Dialect): string[] {
  const text = readSql(import.meta.url, 'schema', dialect, schemaParts[dialect]);
  // A statement ends with a semicolon at the end of a line; the lines of a trigger's body are indented.
  const all = text.split(/;\n(?! )/).filter((statement) => statement.trim() !== '');
  if (dialect === 'postgres') return all.filter((statement) => !statement.includes('-- Only on SQLite'));
  return all.filter((statement) => !statement.includes('-- Only on PostgreSQL')).map(toSqlite);
}

function toSqlite(statement: string): string {
  const table = /^CREATE TABLE (\w+)/m.exec(statement)?.[1];
  const options = table === undefined ? '' : ordered.includes(table) ? ' STRICT, WITHOUT ROWID' : ' STRICT';
  return `${statement.replaceAll('bigint', 'integer')}${options}`;
}

function readTables(dialect: Dialect, ...names: string[]): string[] {
  return readStatements(dialect).filter((statement) => names.some((name) => new RegExp(`^CREATE .*\\b${name} \\(`, 'm').test(statement)));
}

function countShards(applied: readonly string[]): number {
  return applied.reduce((count, name) => Number(/^shards-(\d+)$/.exec(name)?.[1] ?? count), 0);
}

type SchemaState = { isEmpty: boolean; missing: string[] };

/** @throws Problem `conflict` if the database is newer than this program, or too old */
export async function schemaState(database: Lane): Promise<SchemaState> {
  const applied = await readApplied(database);
  const shards = countShards(applied);
  if (shards > 0) database.useShards(shards);
  return toSchemaState(applied);
}

async function readApplied({ kind, query, read }: Lane, on: Knex = read): Promise<string[]> {
  const [row] = await query<{ found: number | boolean }>(
    kind === 'sqlite'
      ? `SELECT count(*) AS found FROM sqlite_master WHERE name = '${migrationsTable}'`
      : // Not with to_regclass, which may remember that the table didn't exist before this transaction got the lock.
        `SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = '${migrationsTable}') AS found`,
    [],
    on,
  );
  return row?.found ? on(migrationsTable).pluck('name') : [];
}

/** @throws Problem `conflict` if the schema is newer than this program, or too old */
export function toSchemaState(applied: readonly string[], what = 'The database'): SchemaState {
  const names = migrations.map(({ name }) => name);
  const own = applied.filter((name) => name !== shardsName(countShards(applied)));
  if (isUnreleased(own)) return { isEmpty: false, missing: names };
  if (own.includes('001-core'))
    throw new Problem('conflict', `${what} is from before the first release. Migrate it with the commit ebd8e993, then with this version.`);
  const newer = own.filter((name) => !names.includes(name));
  if (newer.length > 0)
    throw new Problem(
      'conflict',
      `${what} was migrated by a newer version of Callkey (migrations: ${newer.join(', ')}). Use that version or a later one.`,
    );
  return { isEmpty: own.length === 0, missing: names.filter((name) => !own.includes(name)) };
}

/** Whether a database with these migrations has exactly the schema that this program expects. */
export function isCurrent(applied: readonly string[]): boolean {
  const own = applied.filter((name) => name !== shardsName(countShards(applied)));
  return own.length === migrations.length && migrations.every(({ name }) => own.includes(name));
}

/** Whether these are the migrations of a Callkey database, and not another program's. */
export function isOurs(applied: readonly string[]): boolean {
  return applied.includes('001-schema') || applied.includes('001-core');
}

/** @throws Error if the calls were divided into shards after the core had started, because its statements don't use the shards yet */
export async function isMigrated(database: Lane): Promise<boolean> {
  const applied = await database.read(migrationsTable).pluck('name');
  if (countShards(applied) !== database.shards().length)
    throw new Error('The calls were divided into shards after this core had started. Restart it.');
  return migrations.every(({ name }) => applied.includes(name));
}

/** Whether the database has the last schema from before the first release, the one of the commit ebd8e993: 32 migrations, up to 045. */
function isUnreleased(applied: readonly string[]): boolean {
  return applied.includes('045-canonical-emails') && applied.filter((name) => /^\d{3}-/.test(name)).length === 32;
}

/** Turns that schema into the first release's. */
const unreleased: Omit<Migration, 'name'> = {
  async up(trx, dialect) {
    const statements = [
      'ALTER TABLE retired_api_keys RENAME TO revoked_api_keys',
      'ALTER TABLE revoked_api_keys RENAME COLUMN retired_at TO revoked_at',
      'DROP TABLE api_key_tallies',
      'ALTER TABLE sign_in_attempts RENAME COLUMN points TO attempts',
      'ALTER TABLE sign_in_attempts RENAME COLUMN expire TO expires_at',
      'ALTER TABLE partners RENAME COLUMN lists_numbers TO has_do_not_call',
      'ALTER TABLE partners RENAME COLUMN lists_version TO do_not_call_version',
      'ALTER TABLE accounts RENAME COLUMN lists_numbers TO has_do_not_call',
      'DROP INDEX retired_api_keys_cancelling',
      'CREATE INDEX revoked_api_keys_cancelling ON revoked_api_keys (id) WHERE cancelling_since IS NOT NULL',
      `ALTER TABLE api_keys ADD COLUMN calls_counted_from ${dialect === 'sqlite' ? 'integer' : 'bigint'}`,
      'ALTER TABLE campaigns ADD COLUMN settings text',
      'ALTER TABLE protection_rules RENAME COLUMN hours_changed TO changed',
      'ALTER TABLE protection_rules ADD COLUMN pace text',
      'ALTER TABLE protection_rules ADD COLUMN contact_limits text',
      ...readTables(dialect, 'dialing_stops', 'dialing_paces'),
    ];
    if (dialect === 'postgres') statements.push('ALTER INDEX retired_api_keys_pkey RENAME TO revoked_api_keys_pkey');
    for (const statement of statements) await trx.raw(statement);
    const shards = (await trx(migrationsTable).pluck('name')).filter((name) => name.startsWith('shards-'));
    for (const table of [`${migrationsTable}_lock`, migrationsTable]) await trx.schema.dropTable(table);
    await trx.raw(`CREATE TABLE ${migrationsTable} (name text PRIMARY KEY)${dialect === 'sqlite' ? ' STRICT' : ''}`);
    if (shards.length > 0) {
      for (const table of [migrationsTable, 'dialing_stops', 'dialing_paces']) await trx.raw(`SELECT create_reference_table('${table}')`);
    }
    await trx(migrationsTable).insert([...shards, '001-schema'].map((name) => ({ name })));
  },
  async upCalls(trx) {
    await trx.raw('ALTER TABLE calls RENAME COLUMN told_late_at TO late_outcome_at');
    await trx.raw('ALTER TABLE calls RENAME COLUMN answered_held_until TO response_held_until');
    for (const column of ['held_for', 'answered_by']) await trx.raw(`ALTER TABLE calls ADD COLUMN ${column} text`);
    for (const index of ['calls_being_dialed', 'calls_in_uncommon_states', 'calls_by_api_key']) await trx.raw(`DROP INDEX ${index}`);
    for (const statement of readStatements(getDialect(trx)).filter((sql) => /calls_being_dialed|calls_of_number|count_answered/.test(sql)))
      await trx.raw(statement);
  },
};
