import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** `startLine` is what the server wrote when it started listening. */
export type Server = {
  url: string;
  managementUrl: string;
  pid: number;
  startLine: Readonly<Record<string, unknown>>;
  stop(): Promise<void>;
};

const running = new Set<ChildProcess>();

/** Starts a script from this folder as a separate process. The script writes its address. */
export async function startServer(script: string, environment: Record<string, string> = {}): Promise<Server> {
  const { PATH = '', HOME = '' } = process.env;
  const file = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [file], { env: { PATH, HOME, ...environment }, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = track(child);
  let managementUrl = '';
  for await (const line of createInterface({ input: child.stdout })) {
    const message = JSON.parse(line);
    if (message.msg === 'management listening') managementUrl = message.url;
    if (message.msg !== 'listening') continue;
    const stop = async () => {
      child.kill('SIGTERM');
      await ended;
    };
    child.stdout.resume();
    return { url: message.url, managementUrl, pid: child.pid ?? 0, startLine: message, stop };
  }
  throw new Error(`${script} ended before it listened.`);
}

/** Starts a core as a service manager does: `node core/main.ts`, without the flags of `npm start`. */
export function startCore(databaseUrl: string, environment: Record<string, string> = {}): Promise<Server> {
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

/** Stops a process when this one ends. @returns a promise that resolves when it has ended */
export function track(child: ChildProcess): Promise<unknown> {
  running.add(child);
  return new Promise((resolve) => {
    for (const event of ['close', 'error']) child.once(event, resolve);
  }).finally(() => running.delete(child));
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

/** Stops all processes that were started here. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}
