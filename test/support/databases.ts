import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../core/server/start/system.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openStorage, unobserved } from '../../core/storage/index.ts';
import { afterEachFile, atTheEnd } from './clean-up.ts';
import { killAll } from './core.ts';
import { type PostgresServer, sharedPostgres, startPostgres } from './postgres.ts';

const kinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof kinds)[number];
/** Both, but for `npm run mutants`. */
export const databaseKinds: readonly DatabaseKind[] = process.env['TEST_DATABASES'] === 'sqlite' ? ['sqlite'] : kinds;

let postgres: Promise<PostgresServer> | undefined;
const templates = new Set<Map<DatabaseKind, unknown>>();

/** What TEST_TEMPLATES names: those that `npm test` has made for all files, by name and kind. */
const given: Record<string, { database: string; content: never }> = JSON.parse(process.env['TEST_TEMPLATES'] ?? '{}');
const directories: string[] = [];

/**
 * Makes databases that begin alike, as copies of one of each kind: a copy takes less than what it has in it.
 *
 * @param name of the templates in TEST_TEMPLATES
 * @param fill fills a database that has the whole schema, and no rows, and disconnects
 * @returns the one that is copied, and a function that makes another copy: the DATABASE_URL, and what `fill` returned
 */
export function databases<Content>(
  name: string,
  fill: (databaseUrl: string) => Promise<Content>,
): { templateOf(kind: DatabaseKind): Promise<Template<Content>>; copyOf(kind: DatabaseKind): Promise<Template<Content>> } {
  const made = new Map<DatabaseKind, Promise<Template<Content>>>();
  templates.add(made);
  const make = async (kind: DatabaseKind) => {
    const shared = given[`${name} ${kind}`];
    if (shared && (await isShared(kind))) return shared;
    const database = await migratedDatabase(kind);
    return { database, content: await fill(database) };
  };
  const templateOf = (kind: DatabaseKind) => {
    const template = made.get(kind) ?? make(kind);
    made.set(kind, template);
    return template;
  };
  return {
    templateOf,
    async copyOf(kind) {
      const { database, content } = await templateOf(kind);
      return { database: await copy(database), content };
    },
  };
}

type Template<Content> = { database: string; content: Content };

/** A PostgreSQL server of this process's own has no template of another's. */
async function isShared(kind: DatabaseKind): Promise<boolean> {
  return kind === 'sqlite' || (await thePostgres()).url === process.env['TEST_POSTGRES_URL'];
}

async function migratedDatabase(kind: DatabaseKind): Promise<string> {
  const shared = given[`without rows ${kind}`];
  if (shared && (await isShared(kind))) return copy(shared.database);
  const database = await emptyDatabase(kind);
  const storage = openStorage(locationOf(database), systemClock, unobserved);
  await storage.migrate().finally(() => storage.close());
  return database;
}

async function copy(database: string): Promise<string> {
  const location = locationOf(database);
  if (location.kind === 'postgres') return (await thePostgres()).createDatabase(new URL(location.url).pathname.slice(1));
  const file = newSqliteFile();
  copyFileSync(location.filename, file);
  return `sqlite:${file}`;
}

function locationOf(databaseUrl: string) {
  const location = parseDatabaseUrl(databaseUrl);
  if (!location) throw new Error(`${databaseUrl} names no database.`);
  return location;
}

export const withoutRows = databases('without rows', async () => undefined);

/** @returns the DATABASE_URL of a fresh database that has the whole schema, and no rows */
export async function freshDatabase(kind: DatabaseKind): Promise<string> {
  return (await withoutRows.copyOf(kind)).database;
}

/** @returns the DATABASE_URL of a database without a schema; on SQLite, without a file */
export async function emptyDatabase(kind: DatabaseKind): Promise<string> {
  return kind === 'sqlite' ? `sqlite:${newSqliteFile()}` : (await thePostgres()).createDatabase();
}

const newSqliteFile = () => join(freshDirectory(), 'callkey.db');

function thePostgres(): Promise<PostgresServer> {
  postgres ??= sharedPostgres();
  return postgres;
}

/** Has the databases of this process on a server of its own, with settings of its own, and not on the one that all files share. */
export async function setUpPostgres(settings: readonly string[] = []): Promise<void> {
  const before = postgres;
  postgres = startPostgres(settings);
  forget('postgres');
  await postgres;
  await (await before)?.stop();
}

/** A directory that is gone after the tests. */
export function freshDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'callkey-test-'));
  directories.push(directory);
  return directory;
}

/** Runs the same tests on each database. */
export function onEachDatabase(tests: (kind: DatabaseKind) => void): void {
  for (const kind of databaseKinds) describe(`on ${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`, () => tests(kind));
}

/** For what there is on PostgreSQL alone. */
export function itOnPostgres(title: string, test: Mocha.AsyncFunc): void {
  const define = databaseKinds.includes('postgres') ? it : it.skip;
  define(title, test);
}

afterEachFile(endProcesses);
atTheEnd(removeDirectories);

async function endProcesses(): Promise<void> {
  killAll();
  // One that did not start has said so, and has nothing to stop.
  const server = await postgres?.catch(() => undefined);
  await server?.stop();
  // The next file goes on with that of all files.
  if (server?.url === process.env['TEST_POSTGRES_URL']) return;
  postgres = undefined;
  forget('postgres');
}

function removeDirectories(): void {
  forget('sqlite');
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
}

function forget(kind: DatabaseKind): void {
  for (const made of templates) made.delete(kind);
}
