import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type ServerProcess, startServerProcess, track } from '../support/server-process.ts';

export const databaseKinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof databaseKinds)[number];

/** `await using` stops it at the end of the block. */
type Server = ServerProcess & AsyncDisposable;

/** Starts a script as a separate process. The script must log its address. @param script its path from this folder, or its URL */
export async function startServer(script: string, environment: Record<string, string> = {}): Promise<Server> {
  const { PATH = '', HOME = '' } = process.env;
  const server = await startServerProcess([fileURLToPath(new URL(script, import.meta.url))], { PATH, HOME, ...environment });
  server.child.stderr?.pipe(process.stderr);
  return { ...server, [Symbol.asyncDispose]: async () => void (await server.stop()) };
}

/** Starts a core as a service manager does: `node core/main.ts`, without the flags of `npm start`. */
export function startCore(databaseUrl: string, environment = {}, script = '../../core/main.ts'): Promise<Server> {
  const SESSION_SECRETS = 'a secret for the bench of at least 32 characters';
  return startServer(script, { DATABASE_URL: databaseUrl, SESSION_SECRETS, PORT: '0', MANAGEMENT_PORT: '0', ...environment });
}

export type Output = { stdout: string };

/** Runs a program until it exits. @throws Error with its standard output */
export function run(program: string, args: readonly string[], env = process.env): Promise<Output> {
  const running = promisify(execFile)(program, args, { env });
  void track(running.child);
  return running;
}

/** Returns what a program says about its version. @throws Error if it isn't installed */
export async function versionOf(program: string): Promise<string> {
  // wrk prints its version, and then exits with an error.
  const { stdout } = await run(program, ['--version']).catch((failed: Partial<Output>) => failed);
  const version = /^\S+ \S+/.exec(stdout ?? '')?.[0];
  if (!version) throw new Error(`The bench needs ${program}: apt-get install ${program}, or brew install ${program}.`);
  return version;
}

/** @returns the script of the published command `callkey` */
export async function packCommand(): Promise<string> {
  const folder = freshFolder();
  await run(process.execPath, [fileURLToPath(new URL('../pack-cli.ts', import.meta.url)), folder]);
  return join(folder, 'callkey', 'lib', 'callkey.js');
}

/**
 * PostgreSQL's defaults are for a small machine that also does other things. Its manual recommends a quarter of the machine's memory for
 * buffers. With a minimum of 1 GB for the log, PostgreSQL reuses old log files, so it doesn't have to create files in the middle of a
 * round.
 */
export const postgresSettings = ['shared_buffers=1GB', 'min_wal_size=1GB', 'max_wal_size=4GB'];
let postgres: PostgresServer | undefined;

export async function freshDatabase(kind: DatabaseKind): Promise<string> {
  if (kind === 'sqlite') return `sqlite:${join(freshFolder(), 'callkey.db')}`;
  postgres ??= await startPostgres(postgresSettings);
  return postgres.createDatabase();
}

/** Returns the main process of the PostgreSQL server, if it was started. */
export const postgresPid = () => postgres?.pid;

/** Stops PostgreSQL. The other processes are killed when this one ends. */
export const leave = async () => postgres?.stop();

/** Creates a folder for temporary files such as databases. It's deleted when this process ends. */
export const freshFolder = () => mkdtempSync(join(tmpdir(), 'callkey-bench-'));

/** Makes this process and its children create all their temporary files in one fresh folder. */
export function useFolder(): void {
  const folder = freshFolder();
  // PostgreSQL doesn't run as root, and needs access to its files.
  chmodSync(folder, 0o755);
  process.env['TMPDIR'] = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}
