import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../core/server/start/system.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { openStorage, unobserved } from '../../core/storage/storage.ts';
import { type PostgresServer, sharedPostgres, startPostgres } from '../../scripts/support/postgres.ts';
import { killAll } from '../../scripts/support/server-process.ts';
import { afterEachFile, atTheEnd } from './clean-up.ts';

const kinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof kinds)[number];
/** Both kinds, except in `npm run mutants`. */
export const databaseKinds: readonly DatabaseKind[] = process.env['TEST_DATABASES'] === 'sqlite' ? ['sqlite'] : kinds;

let postgres: Promise<PostgresServer> | undefined;
const templates = new Set<Map<DatabaseKind, unknown>>();

/** The value of TEST_TEMPLATES: the templates that `npm test` has created for all files, by name and kind. */
const givenTemplates: Record<string, { database: string; content: never }> = JSON.parse(process.env['TEST_TEMPLATES'] ?? '{}');
const directories: string[] = [];

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
  const storage = openStorage(parseLocation(database), systemClock, unobserved);
  await storage.migrate().finally(() => storage.close());
  return database;
}

async function copy(database: string): Promise<string> {
  const location = parseLocation(database);
  if (location.kind === 'postgres') return (await postgresServer()).createDatabase(new URL(location.url).pathname.slice(1));
  const file = newSqliteFile();
  copyFileSync(location.filename, file);
  return `sqlite:${file}`;
}

function parseLocation(databaseUrl: string) {
  const location = parseDatabaseUrl(databaseUrl);
  return location;
}

export const withoutRows = databases('without rows', async () => undefined);

/** @returns the DATABASE_URL of a new database with the whole schema and no rows */
export async function freshDatabase(kind: DatabaseKind): Promise<string> {
  return (await withoutRows.createCopy(kind)).database;
}

/** @returns the DATABASE_URL of a database without a schema; for SQLite, without a file */
export async function emptyDatabase(kind: DatabaseKind): Promise<string> {
  return kind === 'sqlite' ? `sqlite:${newSqliteFile()}` : (await postgresServer()).createDatabase();
}

const newSqliteFile = () => join(freshDirectory(), 'callkey.db');

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
  define(title, test);
}

afterEachFile(endProcesses);
atTheEnd(removeDirectories);

async function endProcesses(): Promise<void> {
  killAll();
  // A server that didn't start has already reported the error, and doesn't need to be stopped.
  const server = await postgres?.catch(() => undefined);
  await server?.stop();
  // The next file uses the shared server again.
  if (server?.url === process.env['TEST_POSTGRES_URL']) return;
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
