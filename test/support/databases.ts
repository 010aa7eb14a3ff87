import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseDatabaseUrl } from '../../core/storage/database.ts';
import { openStorage, unobserved } from '../../core/storage/index.ts';
import { systemClock } from '../../core/system.ts';
import { afterEachFile, atTheEnd } from './clean-up.ts';
import { killAll } from './core.ts';
import { type PostgresServer, sharedPostgres, startPostgres } from './postgres.ts';

const kinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof kinds)[number];
/** Both, but for `npm run mutants`. */
export const databaseKinds: readonly DatabaseKind[] = process.env['TEST_DATABASES'] === 'sqlite' ? ['sqlite'] : kinds;

let postgres: Promise<PostgresServer> | undefined;
const templates = new Map<DatabaseKind, Promise<string>>();
const directories: string[] = [];

/** @returns the DATABASE_URL of a fresh database that has the whole schema, and no rows */
export async function freshDatabase(kind: DatabaseKind): Promise<string> {
  const template = await templateOf(kind);
  if (kind === 'postgres') return (await thePostgres()).createDatabase(template);
  const file = newSqliteFile();
  copyFileSync(template, file);
  return `sqlite:${file}`;
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
  templates.delete('postgres');
  await postgres;
  await (await before)?.stop();
}

/** Migrations take longer than a copy of what they make. @returns a SQLite file, or the name of a database */
async function templateOf(kind: DatabaseKind): Promise<string> {
  const given = process.env['TEST_SQLITE_TEMPLATE'];
  if (kind === 'sqlite' && given !== undefined) return given;
  const made = templates.get(kind) ?? makeTemplate(kind);
  templates.set(kind, made);
  return made;
}

async function makeTemplate(kind: DatabaseKind): Promise<string> {
  const location = parseDatabaseUrl(await emptyDatabase(kind));
  if (!location) throw new Error('The template has no address.');
  const storage = openStorage(location, systemClock, unobserved);
  await storage.migrate().finally(() => storage.close());
  return location.kind === 'sqlite' ? location.filename : new URL(location.url).pathname.slice(1);
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
  templates.delete('postgres');
}

function removeDirectories(): void {
  templates.delete('sqlite');
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
}
