import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Clock, Passwords, Randomness } from '../../core/domain/ports/environment.ts';
import { type Core, startCore } from '../../core/server/core.ts';
import { readConfig } from '../../core/server/start/config.ts';
import { createLog } from '../../core/server/start/log.ts';
import { systemClock, systemRandomness } from '../../core/server/start/system.ts';
import { testRandomness } from './clock.ts';
import { bareEnvironment } from './commands.ts';
import { cheapPasswords } from './passwords.ts';

export const testSecret = 'a secret for tests of at least 32 characters';

const toEnvironment = (databaseUrl: string) => ({
  DATABASE_URL: databaseUrl,
  SESSION_SECRETS: testSecret,
  PORT: '0',
  MANAGEMENT_PORT: '0',
  LOG_LEVEL: 'trace',
});

export type LogLine = Readonly<Record<string, unknown>>;
export type RunningCore = Core & { log: LogLine[] };

export type CoreOptions = {
  clock?: Clock | undefined;
  environment?: Record<string, string>;
  passwords?: Passwords;
  randomness?: Randomness;
};

/** Starts a whole core within the test's process, with a clock that the test can move. */
export async function startCoreHere(
  databaseUrl: string,
  {
    clock = systemClock,
    environment = {},
    passwords = cheapPasswords(),
    // A test's own clock doesn't match the times in identifiers.
    randomness = clock === systemClock ? systemRandomness : testRandomness,
  }: CoreOptions = {},
): Promise<RunningCore> {
  const config = readConfig({ ...toEnvironment(databaseUrl), ...environment });
  const log: LogLine[] = [];
  const lines = new Writable({
    write(chunk, _encoding, done) {
      for (const line of String(chunk).split('\n')) if (line !== '') log.push(JSON.parse(line));
      done();
    },
  });
  const core = await startCore(config, config.sessionSecrets ?? [], {
    log: createLog(config.logLevel, lines),
    clock,
    randomness,
    passwords,
  });
  return { ...core, log };
}

export type CoreProcess = {
  url: string;
  managementUrl: string;
  /** All of its output so far. */
  stdout: string[];
  stderr: string[];
  child: ChildProcess;
  /** Sends a signal and waits for the end. @returns the exit code, or the signal that ended it */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
};

/** The processes that are still running, so that a failed test leaves nothing behind. */
const running = new Set<ChildProcess>();

export function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}
// Don't leave cores running if this process ends in the middle of a test.
process.once('exit', killAll);

const root = new URL('../../', import.meta.url);
const { scripts }: { scripts: { start: string } } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
/** The Node.js options of `npm start`. */
const startArgs = scripts.start.split(' ').slice(1, -1);
const main = fileURLToPath(new URL('core/main.ts', root));

/** Starts the same program as `npm start`, in a separate process. */
export async function spawnCore(
  databaseUrl: string,
  environment: Record<string, string> = {},
  directory = process.cwd(),
): Promise<CoreProcess> {
  const child = spawn(process.execPath, [...startArgs, main], {
    env: { ...bareEnvironment, ...toEnvironment(databaseUrl), LOG_LEVEL: 'info', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: directory,
  });
  const stdout: string[] = [];
  const stderr: string[] = [];
  const urls = new Map<unknown, string>();
  running.add(child);
  // Waits for the end of its output instead of its exit, after which output can still be unread.
  const ended = once(child, 'close').finally(() => running.delete(child));
  createInterface({ input: child.stderr }).on('line', (line) => stderr.push(line));
  const listening = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      stdout.push(line);
      const { msg, url } = JSON.parse(line);
      if (typeof url === 'string') urls.set(msg, url);
      if (msg === 'listening') resolve();
    });
  });
  await Promise.race([
    listening,
    ended.then(([code]) => {
      throw new Error(`The core ended with ${code} before it listened:\n${[...stdout, ...stderr].join('\n')}`);
    }),
  ]);
  return {
    url: urls.get('listening') ?? '',
    managementUrl: urls.get('management listening') ?? '',
    stdout,
    stderr,
    child,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      const [code, by] = await ended;
      return code ?? by;
    },
  };
}
