import { once } from 'node:events';
import { enableCompileCache } from 'node:module';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { adminCommand, version } from './program.ts';
import type { Core } from './server/core.ts';
import type { Config } from './server/start/config.ts';

const usage = `Usage: callkey-core [--health | --version | --help]

Runs a core until it receives SIGTERM or SIGINT. Configure it with environment variables such as
DATABASE_URL, HOST and PORT. For everything else, run: ${adminCommand} --help

  --health  exit with 0 if the core with the same environment is running, and with 1 if it isn't
`;

const [argument] = process.argv.slice(2);
if (argument === '--health') process.exit(await checkHealth());
if (argument !== undefined) {
  if (argument === '--version') process.stdout.write(`${version}\n`);
  else if (argument === '--help') process.stdout.write(usage);
  else process.stderr.write(`Unknown argument: ${argument}. Configure the core with environment variables.\n\n${usage}`);
  process.exit(['--version', '--help'].includes(argument) ? 0 : 2);
}

/** Asks the running core on this machine, for the health checks of containers. @returns the exit code */
async function checkHealth(): Promise<number> {
  const { readManagementAddress } = await import('./server/start/config.ts');
  const { Agent, get } = await import('node:http');
  try {
    const address = readManagementAddress(process.env);
    if (address === null) throw new Error("MANAGEMENT_PORT is off, so the core doesn't report its health.");
    // Otherwise, Node would ask port 80.
    if (address.port === 0) throw new Error("MANAGEMENT_PORT is 0, so the core's port isn't known.");
    // Not `fetch`, which refuses some ports. An agent of its own doesn't use a proxy.
    const request = get({ ...address, path: '/healthz', agent: new Agent(), signal: AbortSignal.timeout(4_000) });
    const [{ statusCode }] = await once(request, 'response');
    if (statusCode !== 200) throw new Error(`The core at ${address.host}, port ${address.port}, returned ${statusCode}.`);
    return 0;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    return 1;
  }
}

/**
 * Node accepts these flags only at startup.
 *
 * - The first two and {@link arenas} keep the process below 200 MB.
 * - The third turns off the helper threads that collect young objects. They cost as much as they save, and on a busy machine the main
 *   thread waits for them (measured: the slowest 5% of pauses took 17 to 25 ms with them, and 3 to 6 ms without).
 * - The fourth keeps V8 from allocating short-lived objects as old ones just because a few survived a burst. Each of these objects would
 *   keep its whole request in memory until the next full collection. Without this flag, the core served less than half as many requests in
 *   some runs, and in all runs that began with a sign-in, with pauses of 5 to 11 ms instead of 0.4.
 */
const nodeFlags = ['--max-semi-space-size=16', '--heap-growing-percent=40', '--no-parallel-scavenge', '--no-allocation-site-pretenuring'];
/** By default, glibc would give each thread its own memory arena. */
const arenas = '2';
/**
 * libuv has four threads by default. SQLite's statements, argon2, the log and host name lookups share them, so two slow lists in the
 * console and a sign-in would leave no thread for keys. Each connection in storage/engine/sqlite/sqlite.ts occupies one thread, and host
 * name lookups can occupy half of all threads.
 */
const threads = '20';
/**
 * A checkout keeps its compiled TypeScript in its own folder, because another user could plant code in a shared temporary folder. The
 * package has no cache: it's JavaScript, and a core writes only next to its database.
 */
const compileCache = import.meta.filename.endsWith('.ts')
  ? fileURLToPath(new URL('../node_modules/.cache/callkey', import.meta.url))
  : null;

// Restart Node in the same process, to keep its process ID, standard streams and signals. Windows can't, and runs without the flags.
if (process.platform !== 'win32' && !nodeFlags.every((flag) => process.execArgv.includes(flag))) {
  const { execPath, execArgv, argv, env } = process;
  const settings = {
    MALLOC_ARENA_MAX: arenas,
    UV_THREADPOOL_SIZE: threads,
    ...(compileCache === null ? {} : { NODE_COMPILE_CACHE: compileCache }),
    ...env,
  };
  process.execve?.(execPath, [execPath, ...execArgv, ...nodeFlags, ...argv.slice(1)], settings);
}

// If the process wasn't restarted, only modules that are imported after this line come from the cache, so they're imported dynamically.
// After a restart with the variable above, this module also comes from the cache, and Node doesn't have to load its type stripper.
if (compileCache !== null) enableCompileCache(compileCache);
// Importing node:http reads all of its exports. Delete these three first, because reading them loads Node's HTTP client, which takes 30 ms
// and isn't needed here.
for (const unused of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(process.getBuiltinModule('node:http'), unused);
const { describeOutdatedNode } = await import('#contract/node-release.ts');
const { restoreTlsChecks, tlsChecksWarning } = await import('#contract/tls-checks.ts');
const { ConfigError, readConfig, suggestAdmin } = await import('./server/start/config.ts');
const { startCore } = await import('./server/core.ts');
const { oneTimePasswordNote } = await import('./domain/directory/users.ts');
const { createLog } = await import('./server/start/log.ts');
const { argon2Passwords } = await import('./server/passwords.ts');
const { loadSessionSecrets } = await import('./server/start/session-secrets.ts');
const { notifyServiceManager, systemClock, systemRandomness } = await import('./server/start/system.ts');

const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/**
 * Closing a terminal sends SIGHUP to the core that runs in it, which must not cut off accepted requests. Without a terminal, the signal comes
 * from someone who expects that the core keeps running: from `nohup`, whose choice to ignore it Node resets, or to reload files.
 */
const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
/** In ms. A second signal within this time is the same: GNU timeout also signals the group, and systemd can add SIGHUP to SIGTERM. */
const sameSignalWithin = 1_000;

async function main(): Promise<void> {
  const checkedNoCertificates = restoreTlsChecks(process.env);
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  if (checkedNoCertificates) log.warn(tlsChecksWarning);
  const outdatedNode = describeOutdatedNode(process.versions.node);
  if (outdatedNode !== null) log.warn(outdatedNode);
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'uncaught exception');
    process.exit(1);
  });

  const stopping = new AbortController();
  const outside = {
    log,
    clock: systemClock,
    randomness: systemRandomness,
    passwords: argon2Passwords(systemRandomness),
    signal: stopping.signal,
  };
  const starting = startCore(config, () => loadSessionSecrets(config, systemRandomness), outside);

  async function stop(): Promise<void> {
    stopping.abort();
    // If the core was still starting, it has stopped by itself and there's nothing to close.
    const core = await starting.catch(() => undefined);
    await core?.close();
    log.info('stopped');
    process.exit(0);
  }

  let stoppingSince: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (signal === 'SIGHUP' && !hasTerminal) {
      log.warn('SIGHUP ignored: the core reloads certificates by itself, and stops on SIGTERM');
      return;
    }
    if (stoppingSince === undefined) {
      stoppingSince = performance.now();
      log.info({ signal, delaySeconds: config.drainDelay }, 'draining');
      notifyServiceManager('STOPPING', log);
      stop().catch((err) => {
        log.fatal({ err }, 'stopping failed');
        process.exit(1);
      });
    } else if (performance.now() - stoppingSince > sameSignalWithin) {
      log.fatal({ signal }, 'second stop signal: exiting without waiting for accepted requests');
      process.exit(1);
    }
  };
  for (const signal of stopSignals) process.on(signal, onSignal);

  const core = await starting.catch((error: unknown) => {
    if (stoppingSince === undefined) throw error;
  });
  if (!core) return;
  // Programs wait for these lines, so they're logged at every level except `silent`.
  const readiness = config.logLevel === 'silent' ? log : log.child({}, { level: 'info' });
  if (core.managementUrl !== null) readiness.info({ url: core.managementUrl }, 'management listening');
  readiness.info({ url: core.url }, 'listening');
  if (stoppingSince === undefined) notifyServiceManager('READY', log);
  const consoleUrl = core.servesConsole ? browserUrl(core.url) : null;
  if (consoleUrl !== null) log.info(`To use the console, open ${consoleUrl} in a browser`);
  if (core.firstUser) say(welcome(core.firstUser, consoleUrl, config));
}

/** Replaces the address that stands for all addresses of the machine, because browsers can't open it. */
function browserUrl(url: string): string {
  return url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, '//localhost');
}

function welcome({ email, password }: NonNullable<Core['firstUser']>, consoleUrl: string | null, { database }: Config): string {
  const where = consoleUrl === null ? 'Sign in with it' : `Open ${consoleUrl} in a browser, sign in with it,`;
  return `
This database had no users, so the core created a staff user:

  email              ${email}
  one-time password  ${password}

${oneTimePasswordNote}
${where} and choose a new password.
Lost it? ${suggestAdmin(database, ['user', 'password', email])}
`;
}

/** Writes to the user at the terminal. Standard output carries the log as JSON lines. */
function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

main().catch((error: unknown) => {
  if (error instanceof ConfigError) say(error.message);
  else createLog('info').fatal({ err: error }, 'start failed');
  process.exitCode = 1;
});
