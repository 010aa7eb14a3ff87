import { readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Clock, Passwords, Randomness } from '../../core/domain/ports.ts';
import { type Core, startCore } from '../../core/server/core.ts';
import { readConfig } from '../../core/server/start/config.ts';
import { createLog } from '../../core/server/start/log.ts';
import { systemClock, systemRandomness } from '../../core/server/start/system.ts';
import { type ServerProcess, startServerProcess } from '../../scripts/support/server-process.ts';
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
    // The test's IDs contain the machine's time. With a test's own clock, the core must not conclude from an ID when it was created.
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

export type CoreProcess = ServerProcess;

const root = new URL('../../', import.meta.url);
const { scripts }: { scripts: { start: string } } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
/** The Node.js options of `npm start`. */
const startArgs = scripts.start.split(' ').slice(1, -1);
const main = fileURLToPath(new URL('core/main.ts', root));

/** Starts the same program as `npm start`, in a separate process. */
export function spawnCore(databaseUrl: string, environment: Record<string, string> = {}, directory?: string): Promise<CoreProcess> {
  const env = { ...bareEnvironment, ...toEnvironment(databaseUrl), LOG_LEVEL: 'info', ...environment };
  return startServerProcess([...startArgs, main], env, directory);
}
