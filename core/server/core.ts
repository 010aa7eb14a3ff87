import { EventEmitter } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type Koa from 'koa';
import type { Logger } from 'pino';
import { isLoopback } from '#contract/server-address.ts';
import { type Dialer, type DialerObserver, startDialer } from '../dialer/loop.ts';
import { simulatedProvider } from '../dialer/simulated.ts';
import { watchTrouble } from '../dialer/trouble.ts';
import { readQueue } from '../domain/calls/dialing.ts';
import { type ClockWatch, describeDoubt, watchClock } from '../domain/clock.ts';
import type { Digest } from '../domain/model.ts';
import type { Clock, Passwords, Ports, Randomness, StopReason } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { endDisallowedSessions } from '../domain/sign-in/sessions.ts';
import { createManagementApp } from '../http/management.ts';
import type { State } from '../http/middleware/context.ts';
import { proxyTrust } from '../http/middleware/every-request.ts';
import { pagePath, readWebConsole } from '../http/web-console.ts';
import { adminCommand, commandLinePackage, version, webConsoleFolder } from '../program.ts';
import { findNeighbors, requireRights } from '../storage/engine/health.ts';
import { openStorage } from '../storage/storage.ts';
import { createApp } from './app.ts';
import { connectionLimits, findRoom, type ObserveCut } from './connections/connections.ts';
import { type Listener, listen } from './connections/listener.ts';
import { watchCertificate } from './connections/tls.ts';
import { createFirstUser, type FirstUser, startHousekeeping } from './housekeeping.ts';
import { createMetrics } from './metrics.ts';
import { type IdentityProviderLimits, openIdentityProvider } from './openid-connect.ts';
import { recordRefusals } from './recorded-refusals.ts';
import { createSecretBox } from './sealed-secrets.ts';
import { type Config, suggestAdmin, type Tls } from './start/config.ts';
import { toDatabaseError } from './start/start-errors.ts';
import { countOpenFiles } from './start/system.ts';

const plainHttpWarning =
  'plain HTTP on a non-loopback address: API keys and passwords can be read on the network. Set TLS_CERT_FILE and TLS_KEY_FILE, or allow only a TLS proxy to reach this port';

const newDatabaseWarning =
  'this is a new, empty database, and there may be others next to it. If you expected to find your data, check DATABASE_URL';

const fewFilesWarning =
  'this process may open so few files that it accepts fewer connections. Raise the limit: LimitNOFILE in systemd, --ulimit nofile in Docker, or ulimit -n';

export type Core = {
  url: string;
  managementUrl: string | null;
  /** Whether a browser finds the console at `url`. */
  servesConsole: boolean;
  /** The staff user that the first start creates; null on every later start. */
  firstUser: FirstUser | null;
  /** Reports that it isn't ready, accepts requests for `drainDelay` more seconds, and finishes them within `drainDeadline`. */
  close(): Promise<void>;
};

/** What one part of the core tells the others, which subscribe when they start. */
type Signals = EventEmitter<{
  /** A call was placed that may be due. */
  placed: [];
  stopped: [reason: StopReason, calls: number];
  /** An active key wasn't accepted from the client's address. */
  'address refused': [digest: Digest, address: string];
  'do-not-call added': [];
  'rules changed': [];
  'calls left': [];
}>;

/**
 * Starts a core: updates the schema, creates the first user if necessary, and opens the listeners.
 *
 * @param loadSessionSecrets called once the database can be used, so that a failed start doesn't leave a secret behind
 * @param outside.signal cancels the start while this core or another one is migrating the schema
 */
export async function startCore(
  config: Config,
  loadSessionSecrets: () => readonly string[],
  outside: {
    log: Logger;
    clock: Clock;
    randomness: Randomness;
    passwords: Passwords;
    signal?: AbortSignal;
    identityProvider?: IdentityProviderLimits;
  },
): Promise<Core> {
  const { log, clock, randomness, passwords } = outside;
  const signals: Signals = new EventEmitter();
  const metrics = createMetrics(version);
  signals.on('stopped', metrics.onStopped).on('address refused', metrics.onAddressRefused);
  const storage = await withUsableStorage(config.database, () =>
    openStorage(config.database, clock, {
      onBatch: metrics.onBatch,
      onStopped: (reason, calls) => signals.emit('stopped', reason, calls),
      onPlaced: () => signals.emit('placed'),
      onAddressRefused: (digest, address) => signals.emit('address refused', digest, address),
      onBackgroundError: (err) => log.warn({ err }, 'background write failed'),
      onUnready: (err) => log.warn({ err }, 'not ready: a write would not be durable'),
    }),
  );
  const listeners: Listener[] = [];
  try {
    const { applied, risks } = await withUsableStorage(config.database, async () => {
      const applied = await storage.migrate(outside.signal);
      await requireRights(storage.database, config.database);
      return { applied, risks: await storage.database.risks() };
    });
    if (applied.length > 0) log.info({ migrations: applied }, 'schema migrated');
    if (config.database.kind === 'sqlite') log.info({ file: config.database.filename }, 'SQLite database opened');
    for (const risk of risks) log.error(risk);

    const sessionSecrets = loadSessionSecrets();
    const ports: Ports = {
      clock,
      randomness,
      stores: storage.stores,
      throttle: storage.throttle,
      passwords,
      identityProvider: config.oidc && openIdentityProvider(config.oidc, { clock, log, limits: outside.identityProvider }),
      passwordSignIn: config.passwordSignIn,
      serverName: URL.parse(config.publicUrl)?.hostname ?? '',
      maxActiveKeys: config.maxActiveKeys,
      adminCommand,
      secretBox: createSecretBox(sessionSecrets, randomness),
      requiresSecondFactor: config.requiresSecondFactor,
      onOutcome: metrics.dialer.onOutcome,
      onStopped: (reason, calls) => signals.emit('stopped', reason, calls),
      onDoNotCallAdded: () => signals.emit('do-not-call added'),
      onRulesChanged: () => signals.emit('rules changed'),
      onCallsLeft: () => signals.emit('calls left'),
    };
    await endDisallowedSessions(ports);
    const clockWatch = watchClock(ports.stores.clock, (doubt) => {
      if (doubt) log.error(describeDoubt(doubt, ports));
      else log.info('the clock is trusted again');
    });
    const refusals = recordRefusals(ports, log);
    signals.on('address refused', refusals.onAddressRefused);
    const webConsole = config.webConsole ? readWebConsole(webConsoleFolder, commandLinePackage) : undefined;
    if (webConsole?.has(pagePath) === false) log.warn("the browser console isn't built: run npm run build:web, then restart");

    const draining = new AbortController();
    const isReady = async () => !draining.signal.aborted && (await storage.isReady());
    const isClockAhead = () => clockWatch.doubt() !== null;
    const onCut: ObserveCut = (reason, address) => {
      metrics.onCut(reason);
      refusals.onCut(address);
    };
    const room = findRoom(countOpenFiles(), config.dialer.kind === 'off' ? 0 : config.dialer.concurrency);
    if (room.public < connectionLimits.inAll) log.warn({ connections: room.public, openFiles: room.openFiles }, fewFilesWarning);
    async function open(app: Koa<State>, name: 'public' | 'management', { host, port }: { host: string; port: number }, tls: Tls | null) {
      const limits = { ...connectionLimits, inAll: name === 'management' ? room.management : room.public };
      const isProxy = proxyTrust(config.trustedProxies);
      const listener = await listen(app.callback(), { name, host, port }, { isProxy, onCut, tls, limits });
      listeners.push(listener);
      return listener;
    }
    const { management, tls } = config;
    const managementApp =
      management && createManagementApp({ version, registry: metrics.registry, isReady, isClockAhead, log, ...management });
    const managementListener = management && managementApp && (await open(managementApp, 'management', management, null));
    const app = createApp({ config, version, ports, log, metrics, refusals, draining: draining.signal, sessionSecrets, webConsole });
    const publicListener = await open(app, 'public', config, tls);
    if (!tls && !isLoopback(config.host)) log.warn({ host: config.host }, plainHttpWarning);

    const isNew = (await ports.stores.users.count()) === 0;
    const neighbors = isNew ? await findNeighbors(storage.database, config.database) : [];
    if (neighbors.length > 0) log.warn({ neighbors }, newDatabaseWarning);
    // Create the user last, because if the start failed after this, the one-time password would be lost.
    const firstUser = isNew ? await createFirstUser(ports) : null;
    if (isNew && !config.passwordSignIn) {
      const createUser = ['user', 'create', 'EMAIL', '--name', 'NAME', '--type', 'staff'];
      log.warn(`no one can sign in, because there are no users. ${suggestAdmin(config.database, createUser)}`);
    }
    const housekeeping = startHousekeeping(ports, config.retentionDays, clockWatch, log);
    signals.on('do-not-call added', housekeeping.blockDoNotCall).on('rules changed', housekeeping.makeHeldDue);
    signals.on('calls left', housekeeping.cancelCallsLeft);
    const certificate = tls && watchCertificate(tls, publicListener.useCertificate, { log, clock });
    const trouble = watchTrouble(randomness.id(), { store: ports.stores.dialing, clock, log });
    const observer = { ...metrics.dialer, onResult: trouble.onResult };
    const dialer = await startConfiguredDialer(config, ports, { log, observer, isTrusted: clockWatch.isTrusted });
    if (dialer) signals.on('placed', dialer.wake);

    metrics.watch({
      pools: storage.pools,
      queue: () => readQueue(ports),
      keys: () => ports.stores.apiKeys.countByDaysLeft(clock.now()),
      database: storage.stats,
      process: async () => ({
        ready: (await isReady()) ? 1 : 0,
        dialerTrouble: trouble.seconds(),
        lastUsedLag: storage.lastUsedLag() / 1_000,
        clockAhead: (clockWatch.doubt()?.aheadBy ?? 0) / 1_000,
        certificateExpiresAt: certificate?.expiresAt() ?? Number.NaN,
      }),
    });

    return {
      url: publicListener.url,
      managementUrl: managementListener?.url ?? null,
      servesConsole: Boolean(webConsole),
      firstUser,
      async close() {
        draining.abort();
        certificate?.end();
        // During this delay, load balancers notice that this core isn't ready, and each response closes its connection.
        const drained = setTimeout(config.drainDelay * 1_000).then(publicListener.drain);
        await Promise.all([drained, dialer?.close(), housekeeping.close()]);
        await trouble.close();
        await managementListener?.drain();
        storage.finishRefusals();
        await refusals.close();
        await storage.close();
      },
    };
  } catch (error) {
    for (const listener of listeners) listener.abort();
    await storage.close().catch(() => undefined);
    // After the migration, the stores report an outage as a Problem.
    throw error instanceof Problem ? toDatabaseError(error, config.database) : error;
  }
}

/** Runs a function that uses the database. @throws ConfigError that says why the database can't be used */
async function withUsableStorage<Result>(location: Config['database'], use: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await use();
  } catch (error) {
    throw toDatabaseError(error, location);
  }
}

async function startConfiguredDialer(
  { dialer: config, dialerSecrets: secrets }: Config,
  { clock, randomness, stores }: Ports,
  outside: { log: Logger; observer: DialerObserver; isTrusted: ClockWatch['isTrusted'] },
): Promise<Dialer | undefined> {
  const { log } = outside;
  if (config.kind === 'off') {
    log.warn('DIALER is off: calls stay queued');
    return undefined;
  }
  if (config.kind === 'simulated') log.warn('DIALER is simulated: no phone rings, and outcomes are made up');
  else log.info({ provider: new URL(config.url).origin, deduplicates: config.deduplicates }, 'dialing through a webhook');
  return startDialer({
    ...outside,
    store: stores.dialing,
    // Import the webhook only if it's needed, because loading its HTTP client slows down startup.
    provider:
      config.kind === 'simulated'
        ? simulatedProvider(clock)
        : (await import('../dialer/webhook.ts')).webhookProvider({ ...config, secrets }, clock),
    concurrency: config.concurrency,
    pace: config.pace,
    clock,
    random: () => randomFraction(randomness),
  });
}

/** Returns a number from 0 to 1, evenly distributed. */
function randomFraction(randomness: Randomness): number {
  return Buffer.from(randomness.bytes(4)).readUInt32BE() / 2 ** 32;
}
