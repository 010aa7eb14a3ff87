import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ServerProcess, startServerProcess, track } from '../support/server-process.ts';

/** Starts a script from this folder as a separate process. The script must log its address. */
export async function startServer(script: string, environment: Record<string, string> = {}): Promise<ServerProcess> {
  const { PATH = '', HOME = '' } = process.env;
  const server = await startServerProcess([fileURLToPath(new URL(script, import.meta.url))], { PATH, HOME, ...environment });
  server.child.stderr?.pipe(process.stderr);
  return server;
}

/** Starts a core as a service manager does: `node core/main.ts`, without the flags of `npm start`. */
export function startCore(databaseUrl: string, environment: Record<string, string> = {}): Promise<ServerProcess> {
  const settings = { DATABASE_URL: databaseUrl, SESSION_SECRETS: 'a secret for the bench of at least 32 characters' };
  return startServer('../../core/main.ts', { ...settings, PORT: '0', MANAGEMENT_PORT: '0', ...environment });
}

/** Runs a program until it exits. @returns its standard output, and how it failed */
export async function run(program: string, args: readonly string[]): Promise<{ stdout: string; error: Error | null }> {
  return new Promise((resolve) => {
    track(execFile(program, args, (error, stdout) => resolve({ stdout, error })));
  });
}

/** @returns the folder of the published command `callkey` */
export async function packCommand(): Promise<string> {
  const folder = freshFolder();
  const { error } = await run(process.execPath, [fileURLToPath(new URL('../pack-cli.ts', import.meta.url)), folder]);
  if (error) throw error;
  return join(folder, 'callkey');
}

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
