import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cleanUp } from '../../test/support/clean-up.ts';
import { testSecret } from '../../test/support/core.ts';

/** `said` is what it wrote when it listened. */
export type Server = { url: string; managementUrl: string; pid: number; said: Readonly<Record<string, unknown>>; stop(): Promise<void> };

const running = new Set<ChildProcess>();

/** Starts a script beside this one that writes where it listens, as a process of its own. */
export async function startServer(script: string, environment: Record<string, string> = {}): Promise<Server> {
  const { PATH = '', HOME = '' } = process.env;
  const file = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [file], { env: { PATH, HOME, ...environment }, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = track(child);
  const said = await Promise.race([
    listening(child),
    ended.then(() => {
      throw new Error(`${script} ended with ${child.exitCode ?? child.signalCode} before it listened.`);
    }),
  ]);
  return {
    ...{ url: String(said['url']), managementUrl: String(said['managementUrl']), pid: child.pid ?? 0, said },
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Starts a core as a service manager does: `node core/main.ts`, without the flags of `npm start`. */
export function startCore(databaseUrl: string, environment: Record<string, string> = {}): Promise<Server> {
  const settings = { DATABASE_URL: databaseUrl, SESSION_SECRETS: testSecret, PORT: '0', MANAGEMENT_PORT: '0' };
  return startServer('../../core/main.ts', { ...settings, ...environment });
}

async function listening({ stdout }: ChildProcess): Promise<Record<string, unknown>> {
  if (!stdout) throw new Error('A server without a standard output.');
  let managementUrl: unknown;
  return new Promise((resolve) => {
    createInterface({ input: stdout }).on('line', (line) => {
      const said = JSON.parse(line);
      if (said.msg === 'management listening') managementUrl = said.url;
      if (said.msg === 'listening') resolve({ ...said, managementUrl });
    });
  });
}

/** Runs a program to its end. @returns its standard output, and how it failed */
export async function run(program: string, args: readonly string[]): Promise<{ stdout: string; error: Error | null }> {
  return new Promise((resolve) => {
    track(execFile(program, args, (error, stdout) => resolve({ stdout, error })));
  });
}

/** Has a process ended with this one. @returns what resolves when it has ended */
export function track(child: ChildProcess): Promise<unknown> {
  running.add(child);
  return new Promise((resolve) => {
    for (const event of ['close', 'error']) child.once(event, resolve);
  }).finally(() => running.delete(child));
}

/** Has everything temporary, the databases included, in one folder that is gone when this process ends. */
export function useFolder(): void {
  const folder = mkdtempSync(join(tmpdir(), 'callkey-bench-'));
  // PostgreSQL does not run as root, and has to get to its files.
  chmodSync(folder, 0o755);
  process.env['TMPDIR'] = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}

/** Ends all processes that were started here. */
export async function leave(): Promise<void> {
  for (const child of running) child.kill('SIGKILL');
  await cleanUp();
}
