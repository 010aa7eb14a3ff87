import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killAll } from './core.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';

export const databaseKinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof databaseKinds)[number];

let postgres: Promise<PostgresServer> | undefined;
const directories: string[] = [];

/** @returns the DATABASE_URL of a fresh, empty database */
export async function freshDatabase(kind: DatabaseKind): Promise<string> {
  if (kind === 'sqlite') return `sqlite:${join(freshDirectory(), 'callkey.db')}`;
  postgres ??= startPostgres();
  return (await postgres).createDatabase();
}

/** Starts the PostgreSQL server with settings of one's own, before it is first used. */
export async function setUpPostgres(settings: readonly string[]): Promise<void> {
  postgres = startPostgres(settings);
  await postgres;
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

/** Leaves nothing behind: no process, no server, no file. */
export async function cleanUp(): Promise<void> {
  killAll();
  // One that did not start has said so, and has nothing to stop.
  await (await postgres?.catch(() => undefined))?.stop();
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
}

export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(60_000);
    await cleanUp();
  },
};
