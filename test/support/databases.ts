import { copyFileSync, existsSync, globSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Knex } from 'knex';
import sqlite3 from 'sqlite3';
import { systemClock } from '../../core/server/start/system.ts';
import { shardSchema } from '../../core/storage/engine/call-lanes.ts';
import { type Lane, type Mode, parseDatabaseUrl, withoutComments } from '../../core/storage/engine/database.ts';
import { openDatabase, openStorage, unobserved } from '../../core/storage/storage.ts';
import { databasesOn, type PostgresServer, startOn, startPostgres } from '../../scripts/support/postgres.ts';
import { killAll } from '../../scripts/support/server-process.ts';
import { afterEachFile, atTheEnd } from './clean-up.ts';
import { skip } from './suites.ts';

const kinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof kinds)[number];
const { TEST_DATABASES } = process.env;
/** Both kinds, unless only one is asked for. */
export const databaseKinds: readonly DatabaseKind[] = kinds.filter((kind) => !TEST_DATABASES || kind === TEST_DATABASES);

let postgres: Promise<PostgresServer> | undefined;
const templates = new Set<Map<DatabaseKind, unknown>>();

/** The value of TEST_TEMPLATES: the templates that `npm test` has created for all files, by name and kind. */
const givenTemplates: Record<string, { database: string; content: never }> = JSON.parse(process.env['TEST_TEMPLATES'] ?? '{}');
const directories: string[] = [];
/** The addresses of the databases that the tests of a file have created, other than templates. */
const created = new Set<string>();

/**
 * Creates databases with the same content by copying one of each kind, which is faster than filling them.
 *
 * @param name the name of the templates in TEST_TEMPLATES
 * @param fill fills a database that has the whole schema and no rows, and disconnects
 * @returns functions that return the template, or a new copy of it: its DATABASE_URL, and what `fill` returned
 */
export function databases<Content>(
  name: string,
  fill: (databaseUrl: string) => Promise<Content>,
): { getTemplate(kind: DatabaseKind): Promise<Template<Content>>; createCopy(kind: DatabaseKind): Promise<Template<Content>> } {
  const byKind = new Map<DatabaseKind, Promise<Template<Content>>>();
  templates.add(byKind);
  const make = async (kind: DatabaseKind) => {
    const shared = givenTemplates[`${name} ${kind}`];
    if (shared && (await isShared(kind))) return shared;
    const database = await migratedDatabase(kind);
    created.delete(database);
    return { database, content: await fill(database) };
  };
  const getTemplate = (kind: DatabaseKind) => {
    const template = byKind.get(kind) ?? make(kind);
    byKind.set(kind, template);
    return template;
  };
  return {
    getTemplate,
    async createCopy(kind) {
      const { database, content } = await getTemplate(kind);
      return { database: await copy(database), content };
    },
  };
}

type Template<Content> = { database: string; content: Content };

/** Whether the server has the shared templates. A PostgreSQL server that only this process uses doesn't have them. */
async function isShared(kind: DatabaseKind): Promise<boolean> {
  return kind === 'sqlite' || (await postgresServer()).url === process.env['TEST_POSTGRES_URL'];
}

async function migratedDatabase(kind: DatabaseKind): Promise<string> {
  const shared = givenTemplates[`without rows ${kind}`];
  if (shared && (await isShared(kind))) return copy(shared.database);
  const database = await emptyDatabase(kind);
  await migrate(database);
  return database;
}

async function migrate(database: string): Promise<void> {
  const storage = openStorage(parseDatabaseUrl(database), systemClock, unobserved);
  await storage.migrate().finally(() => storage.close());
}

async function copy(database: string): Promise<string> {
  const location = parseDatabaseUrl(database);
  if (location.kind === 'postgres') return createOnServer(new URL(location.url).pathname.slice(1));
  const file = newSqliteFile();
  copyFileSync(location.filename, file);
  return `sqlite:${file}`;
}

export const withoutRows = databases('without rows', async () => undefined);

/** @returns the DATABASE_URL of a new database with the whole schema and no rows */
export async function freshDatabase(kind: DatabaseKind): Promise<string> {
  return (await withoutRows.createCopy(kind)).database;
}

/** @returns the DATABASE_URL of a database without a schema; for SQLite, without a file */
export async function emptyDatabase(kind: DatabaseKind): Promise<string> {
  return kind === 'sqlite' ? `sqlite:${newSqliteFile()}` : createOnServer();
}

async function createOnServer(template?: string): Promise<string> {
  const database = await (await postgresServer()).createDatabase(template);
  created.add(database);
  return database;
}

function newSqliteFile(): string {
  const file = join(freshDirectory(), 'callkey.db');
  created.add(`sqlite:${file}`);
  return file;
}

/** Returns the server in TEST_POSTGRES_URL, such as the one that `npm test` starts for all files, or starts one for this process. */
export async function sharedPostgres(): Promise<PostgresServer> {
  const sharedUrl = process.env['TEST_POSTGRES_URL'];
  // With autovacuum, the server would visit each of several hundred new databases every minute.
  const settings = ['autovacuum=off'];
  return sharedUrl === undefined ? startPostgres(settings) : databasesOn(sharedUrl, null, async () => undefined);
}

function postgresServer(): Promise<PostgresServer> {
  postgres ??= sharedPostgres();
  return postgres;
}

/** Uses a separate server with these settings for the databases of this process, instead of the one that all files share. */
export async function setUpPostgres(settings: readonly string[] = []): Promise<void> {
  const before = postgres;
  postgres = startPostgres(settings);
  forget('postgres');
  await postgres;
  await (await before)?.stop();
}

/** Creates a directory that is removed after the tests. */
export function freshDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'callkey-test-'));
  directories.push(directory);
  return directory;
}

/** Runs the same tests on each database. */
export function onEachDatabase(tests: (kind: DatabaseKind) => void): void {
  for (const kind of databaseKinds) describe(`on ${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, () => tests(kind));
}

/** Runs a test that applies only to PostgreSQL. */
export function itOnPostgres(title: string, test: Mocha.AsyncFunc): void {
  const define = databaseKinds.includes('postgres') ? it : it.skip;
  define(`on PostgreSQL, ${title}`, test);
}

afterEachFile(endProcesses);
atTheEnd(removeDirectories);

async function endProcesses(): Promise<void> {
  killAll();
  const databases = [...created].map(parseDatabaseUrl);
  created.clear();
  for (const each of databases) if (each.kind === 'sqlite') rmSync(dirname(each.filename), { recursive: true, force: true });
  // A server that didn't start has already reported the error, and doesn't need to be stopped.
  const server = await postgres?.catch(() => undefined);
  // The next file uses the shared server again.
  if (server?.url === process.env['TEST_POSTGRES_URL']) {
    await server?.dropDatabases(databases.flatMap((each) => (each.kind === 'postgres' ? [each.url] : [])));
    return;
  }
  await server?.stop();
  postgres = undefined;
  forget('postgres');
}

function removeDirectories(): void {
  forget('sqlite');
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
}

function forget(kind: DatabaseKind): void {
  for (const byKind of templates) byKind.delete(kind);
}

/** Returns a folder in memory, where commits don't wait for a disk, if it has this many bytes free. Containers often have 64 MB. */
export function memoryFolder(bytes: number): string | undefined {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > bytes ? '/dev/shm' : undefined;
  } catch {
    return undefined;
  }
}

/** Starts a server of the release of this machine's tools, because older ones refuse newer servers. @returns undefined without tools */
export async function startPostgresOfTools(): Promise<PostgresServer | undefined> {
  const bin = postgresTools();
  return bin === undefined ? undefined : startOn({ initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') });
}

/** @returns the folder of the newest PostgreSQL installed by a Debian package */
export function postgresTools(): string | undefined {
  const folders = globSync('/usr/lib/postgresql/*/bin').sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  return folders.find((folder) => ['initdb', 'postgres', 'pg_dump', 'psql'].every((tool) => existsSync(join(folder, tool))));
}

type ToolDatabases = { kind: DatabaseKind; freshDatabase(): Promise<string>; emptyDatabase(): Promise<string> };

/** Runs the same tests on SQLite and on a PostgreSQL of the same release as this machine's tools, such as pg_dump. */
export function onToolDatabases(tests: (on: ToolDatabases) => void): void {
  for (const kind of databaseKinds)
    describe(`on ${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, function () {
      this.timeout(120_000);
      let server: PostgresServer | undefined;
      let template: string | undefined;
      before(async function () {
        if (kind === 'sqlite') return;
        server = await startPostgresOfTools();
        // No npm package contains pg_dump, pg_restore and psql.
        if (!server) return skip(this, 'no PostgreSQL with its tools in /usr/lib/postgresql');
        const url = await server.createDatabase();
        await migrate(url);
        template = new URL(url).pathname.slice(1);
      });
      after(() => server?.stop());
      tests({
        kind,
        freshDatabase: () => server?.createDatabase(template) ?? freshDatabase(kind),
        emptyDatabase: () => server?.createDatabase() ?? emptyDatabase(kind),
      });
    });
}

/** @returns the DATABASE_URL of a database of the last commit before the first release */
export async function unreleasedDatabase(kind: DatabaseKind): Promise<string> {
  const url = await freshDatabase(kind);
  const database = openDatabase(parseDatabaseUrl(url), 'refuse');
  await toUnreleased(database).finally(() => database.close());
  return url;
}

/** Gives a complete database the schema of the commit ebd8e993, the last one from before the first release. */
export async function toUnreleased({ write, kind, shards }: Lane): Promise<void> {
  const ofCalls = shards().length === 0 ? ['calls'] : shards().map((_, number) => `${shardSchema(number)}.calls`);
  const knexTables =
    kind === 'sqlite'
      ? ['id integer NOT NULL PRIMARY KEY AUTOINCREMENT', '"index" integer NOT NULL PRIMARY KEY AUTOINCREMENT']
      : ['id serial PRIMARY KEY', '"index" serial PRIMARY KEY'];
  const statements = [
    'ALTER TABLE revoked_api_keys RENAME COLUMN revoked_at TO retired_at',
    'ALTER TABLE revoked_api_keys RENAME TO retired_api_keys',
    'CREATE TABLE api_key_tallies (scope text NOT NULL, id text NOT NULL, keys bigint NOT NULL)',
    'ALTER TABLE sign_in_attempts RENAME COLUMN attempts TO points',
    'ALTER TABLE sign_in_attempts RENAME COLUMN expires_at TO expire',
    'ALTER TABLE partners RENAME COLUMN has_do_not_call TO lists_numbers',
    'ALTER TABLE partners RENAME COLUMN do_not_call_version TO lists_version',
    'ALTER TABLE accounts RENAME COLUMN has_do_not_call TO lists_numbers',
    'DROP INDEX revoked_api_keys_cancelling',
    'CREATE INDEX retired_api_keys_cancelling ON retired_api_keys (id) WHERE cancelling_since IS NOT NULL',
    ...(kind === 'sqlite' ? ['DROP TRIGGER count_answered'] : []),
    ...ofCalls.flatMap((table) => [
      `ALTER TABLE ${table} RENAME COLUMN late_outcome_at TO told_late_at`,
      `ALTER TABLE ${table} RENAME COLUMN response_held_until TO answered_held_until`,
      ...['calls_of_number', 'calls_being_dialed'].map((index) => `DROP INDEX ${table.replace(/calls$/, index)}`),
      `CREATE INDEX calls_being_dialed ON ${table} (phone) WHERE state = 'dialing'`,
      `CREATE INDEX calls_in_uncommon_states ON ${table} (campaign_id, state) WHERE state NOT IN ('queued', 'dialing', 'completed')`,
      `CREATE INDEX calls_by_api_key ON ${table} (api_key_id, state) WHERE due_at IS NULL`,
      ...['held_for', 'answered_by'].map((column) => `ALTER TABLE ${table} DROP COLUMN ${column}`),
    ]),
    'ALTER TABLE api_keys DROP COLUMN calls_counted_from',
    'ALTER TABLE campaigns DROP COLUMN settings',
    'ALTER TABLE protection_rules RENAME COLUMN changed TO hours_changed',
    ...['pace', 'contact_limits'].map((column) => `ALTER TABLE protection_rules DROP COLUMN ${column}`),
    ...['dialing_stops', 'dialing_paces'].map((table) => `DROP TABLE ${table}`),
    ...(kind === 'sqlite' ? [] : ['ALTER INDEX revoked_api_keys_pkey RENAME TO retired_api_keys_pkey']),
    'DROP TABLE schema_migrations',
    `CREATE TABLE schema_migrations (${knexTables[0]}, name varchar(255), batch integer, migration_time timestamp)`,
    `CREATE TABLE schema_migrations_lock (${knexTables[1]}, is_locked integer)`,
    ...(shards().length === 0
      ? []
      : ['schema_migrations', 'schema_migrations_lock'].map((name) => `SELECT create_reference_table('${name}')`)),
  ];
  const numbers = [...Array.from({ length: 24 }, (_, n) => n + 1), 30, 31, 32, 33, 41, 42, 43, 45];
  const names = numbers.map((n) => `${String(n).padStart(3, '0')}-${{ 1: 'core', 45: 'canonical-emails' }[n] ?? 'other'}`);
  await write.transaction(async (trx) => {
    if (shards().length > 0) await trx.raw(`SET LOCAL citus.multi_shard_modify_mode = 'sequential'`);
    for (const statement of statements) await trx.raw(statement);
    if (shards().length > 0) names.push(`shards-${shards().length}`);
    await trx.from<{ name: string }>('schema_migrations').insert(names.map((name) => ({ name })));
  });
}

/** Holds a SQLite file's write lock, like another process. @returns a function that releases it */
export async function holdWriteLock(database: string): Promise<() => Promise<void>> {
  const holder = new sqlite3.Database(database.slice('sqlite:'.length));
  const execute = (sql: string) => new Promise<void>((resolve, reject) => holder.exec(sql, (error) => (error ? reject(error) : resolve())));
  await execute('PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE');
  return async () => {
    await execute('ROLLBACK');
    await new Promise((resolve) => holder.close(resolve));
  };
}

/** Returns the database's plan for each query that `doing` sends through this pool, in order. */
export async function readPlans(kind: DatabaseKind, pool: Knex, doing: () => Promise<unknown>): Promise<string[]> {
  const sent: { sql: string; bindings: Knex.RawBinding[] }[] = [];
  const note = (query: (typeof sent)[number]) => /^(select|with|update|delete)\b/i.test(query.sql) && sent.push(query);
  pool.on('query', note);
  await doing().finally(() => pool.removeListener('query', note));
  const explain = kind === 'postgres' ? 'EXPLAIN' : 'EXPLAIN QUERY PLAN';
  const plans: string[] = [];
  for (const { sql, bindings } of sent) plans.push(JSON.stringify(await pool.raw(`${explain} ${sql.replaceAll(/\$\d+/g, '?')}`, bindings)));
  return plans;
}

/** Creates a database that records each prepared statement: how it was prepared, and its first two words. */
export function recordStatements(database: Lane): { database: Lane; ran: string[] } {
  const ran: string[] = [];
  return {
    ran,
    database: {
      ...database,
      prepare: <Found extends object>(sql: string, mode: Mode) => {
        const run = database.prepare<Found>(sql, mode);
        return (...given: Parameters<typeof run>) => {
          ran.push(`${mode} ${withoutComments(sql).split(/\s+/, 2).join(' ')}`);
          return run(...given);
        };
      },
    },
  };
}

/** Returns the integers from 1, as a table `n(i)`. */
export function numbers(kind: DatabaseKind, count: number): string {
  return kind === 'postgres'
    ? `generate_series(1::bigint, ${count}) AS n(i)`
    : `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i FROM n) AS n`;
}
