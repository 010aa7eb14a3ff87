import { ConfigError, readConfig } from './config.ts';
import { type Core, startCore } from './core.ts';
import { createLog } from './log.ts';
import { sessionSecretsOf } from './session-secrets.ts';
import { systemClock, systemRandomness } from './system.ts';

/** For people at the terminal; the log on standard output stays JSON. */
function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** A terminal that goes away sends SIGHUP: requests that were accepted finish then, too. */
const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/**
 * In ms: what comes so soon after the first signal is the same one. GNU timeout signals the process, and then its whole group; systemd's
 * SendSIGHUP sends SIGHUP right after SIGTERM.
 */
const oneSignal = 1_000;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'uncaught exception');
    process.exit(1);
  });

  const stopping = new AbortController();
  const outside = { log, clock: systemClock, randomness: systemRandomness, signal: stopping.signal };
  const starting = startCore(config, sessionSecretsOf(config, systemRandomness), outside);
  let stoppingSince: number | undefined;
  const stop = (signal: NodeJS.Signals) => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince < oneSignal) return;
      log.fatal({ signal }, 'told to stop again: ended without waiting for accepted requests');
      process.exit(1);
    }
    stoppingSince = performance.now();
    log.info({ signal, delaySeconds: config.drainDelay }, 'draining');
    stopping.abort();
    // A core that is still starting gives up, or has to be up before it can be let down.
    starting
      .then(
        ({ close }) => close(),
        () => undefined,
      )
      .then(
        () => {
          log.info('stopped');
          process.exit(0);
        },
        (err) => {
          log.fatal({ err }, 'stopping failed');
          process.exit(1);
        },
      );
  };
  for (const signal of stopSignals) process.on(signal, stop);
  const core = await starting.catch((error: unknown) => {
    if (stoppingSince === undefined) throw error;
  });
  if (core) announce(core, log);
}

function announce(core: Core, log: ReturnType<typeof createLog>): void {
  if (core.managementUrl !== null) log.info({ url: core.managementUrl }, 'management listening');
  log.info({ url: core.url }, 'listening');
  if (!core.firstUser) return;
  const { email, password } = core.firstUser;
  say(
    [
      '',
      'This core has no users yet, so it has made a first one, of the type staff:',
      '',
      `  e-mail             ${email}`,
      `  one-time password  ${password}`,
      '',
      'It is shown this once and works for seven days. Sign in with it and choose a password of your own.',
      `Lost it? npm run admin -- user password ${email}`,
      '',
    ].join('\n'),
  );
}

main().catch((error: unknown) => {
  if (error instanceof ConfigError) say(error.message);
  else createLog('info').fatal({ err: error }, 'start failed');
  process.exitCode = 1;
});
