import { setTimeout } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isLoopback } from '#contract/server-address.ts';
import { type Dialer, type DialerObserver, startDialer } from '../dialer/loop.ts';
import { simulatedProvider } from '../dialer/simulated.ts';
import { watchTrouble } from '../dialer/trouble.ts';
import { type ClockWatch, describeDoubt, watchClock } from '../domain/clock.ts';
import type { Clock, Passwords, Ports, Randomness } from '../domain/ports.ts';
import { endDisallowedSessions } from '../domain/sign-in/sessions.ts';
import { createManagementApp } from '../http/management.ts';
import { proxyTrust } from '../http/middleware/client-address.ts';
import { pagePath, readWebConsole } from '../http/web-console.ts';
import { adminCommand, commandLinePackage, version, webConsoleFolder } from '../program.ts';
import { openStorage } from '../storage/storage.ts';
import { createApp } from './app.ts';
import type { CutReason } from './connections/connections.ts';
import { type Listener, listen } from './connections/listener.ts';
import { reloadCertificate } from './connections/tls.ts';
import { createFirstUser, type FirstUser, type Housekeeping, startHousekeeping } from './housekeeping.ts';
import { openIdentityProvider } from './identity-provider.ts';
import { createMetrics } from './metrics.ts';
import { collectRefusals, type Refusals } from './refusals.ts';
import { createSecretBox } from './sealed-secrets.ts';
import type { Config } from './start/config.ts';
import { toDatabaseError } from './start/start-errors.ts';

const acceptClock = `${adminCommand} clock accept`;

const noUsersWarning = `there are no users, so no one can sign in: create one with ${adminCommand} user create EMAIL --name NAME --type staff`;

const plainHttpWarning =
  'plain HTTP on a non-loopback address: API keys and passwords can be read on the network. Set TLS_CERT_FILE and TLS_KEY_FILE, or allow only a TLS proxy to reach this port';

export type Core = {
  /** The address of the public listener. */
  url: string;
  managementUrl: string | null;
  /** Whether a browser finds the console at `url`. */
  servesConsole: boolean;
  /** The staff user that the first start creates; null on every later start. */
  firstUser: FirstUser | null;
  /**
   * Reports that the core isn't ready, accepts requests for another `drainDelay` seconds, and then finishes the accepted ones within
   * `drainDeadline`.
   */
  close(): Promise<void>;
};

/**
 * Starts a core: updates the schema, creates the first user if necessary, and opens the listeners.
 *
 * @param outside.signal cancels the start while this core or another one is migrating the schema
 */
export async function startCore(
  config: Config,
  sessionSecrets: readonly string[],
  outside: { log: Logger; clock: Clock; randomness: Randomness; passwords: Passwords; signal?: AbortSignal },
): Promise<Core> {
  const { log, clock, randomness, passwords } = outside;
  const metrics = createMetrics(version);
  let dialer: Dialer | undefined;
  let refusals: Refusals | undefined;
  let housekeeping: Housekeeping | undefined;
  const storage = await withUsableStorage(config.database, () =>
    openStorage(config.database, clock, {
      onBatch: metrics.onBatch,
      onStopped: metrics.onStopped,
      onPlaced: () => dialer?.wake(),
      onAddressRefused: (digest, address) => refusals?.onAddressRefused(digest, address),
      onBackgroundError: (err) => log.warn({ err }, 'background write failed'),
      onUnready: (err) => log.warn({ err }, 'not ready: a write would not be durable'),
    }),
  );
  const listeners: Listener[] = [];
  try {
    const { applied, added } = await withUsableStorage(config.database, () => storage.migrate(outside.signal));
    if (applied.length > 0) log.info({ migrations: applied }, 'schema migrated');
    if (added.length > 0) log.warn({ migrations: added }, 'a newer release has extended the database; this older core works with it');
    if (config.database.kind === 'sqlite') log.info({ file: config.database.filename }, 'SQLite database opened');
    for (const risk of await storage.database.risks()) log.error(risk);
    for (const pool of storage.pools) metrics.watchPool(pool.name, pool.use);

    const ports: Ports = {
      clock,
      randomness,
      stores: storage.stores,
      throttle: storage.throttle,
      passwords,
      provider: config.oidc && openIdentityProvider(config.oidc, { clock, log }),
      passwordSignIn: config.passwordSignIn,
      maxActiveKeys: config.maxActiveKeys,
      adminCommand,
      secretBox: createSecretBox(sessionSecrets, randomness),
      requiresSecondFactor: config.requiresSecondFactor,
      onOutcome: metrics.dialer.onOutcome,
      onStopped: metrics.onStopped,
      onListed: () => housekeeping?.blockListed(),
      onHoursChanged: () => housekeeping?.makeHeldDue(),
    };

    await endDisallowedSessions(ports);
    const webConsole = config.webConsole ? readWebConsole(webConsoleFolder, commandLinePackage) : undefined;
    if (webConsole?.has(pagePath) === false) log.warn("the browser console isn't built: run npm run build:web, then restart");
    let isDraining = false;
    const isReady = async () => !isDraining && (await storage.isReady());
    const refused = collectRefusals(ports, log, metrics.onAddressRefused);
    refusals = refused;
    const app = createApp({
      version,
      ports,
      log,
      observeRequest: metrics.onRequest,
      isDraining: () => isDraining,
      sessionSecrets,
      trustedProxies: config.trustedProxies,
      dialerSecrets: config.dialerSecrets,
      refusals: refused,
      dialer: config.dialer.kind,
      publicUrl: config.publicUrl,
      onProviderSignIn: metrics.onProviderSignIn,
      onCode: metrics.onCode,
      webConsole,
    });
    const clockWatch = watchClock(ports.stores.clock, (doubt) => {
      if (doubt) log.error(describeDoubt(doubt, acceptClock));
      else log.info('the clock is trusted again');
    });
    const isClockAhead = () => clockWatch.doubt() !== null;
    const management =
      config.management &&
      createManagementApp({ version, registry: metrics.registry, isReady, isClockAhead, log, host: config.management.host });

    const connections = {
      isProxy: proxyTrust(config.trustedProxies),
      onCut(reason: CutReason, address: string) {
        metrics.onCut(reason);
        refused.onCut(address);
      },
    };
    const opened = async (opening: Promise<Listener>) => {
      const listener = await opening;
      listeners.push(listener);
      return listener;
    };
    const managementListener =
      management &&
      config.management &&
      (await opened(listen(management.callback(), { name: 'management', ...config.management }, { ...connections, tls: null })));
    const { host, port, tls } = config;
    const publicListener = await opened(listen(app.callback(), { name: 'public', host, port }, { ...connections, tls }));
    if (!tls && !isLoopback(host)) log.warn({ host }, plainHttpWarning);
    // Create the user last, because if the start failed after this, the one-time password would be lost.
    const firstUser = await createFirstUser(ports);
    if (!config.passwordSignIn && (await ports.stores.users.count()) === 0) log.warn(noUsersWarning);
    const started = startHousekeeping(ports, config.retentionDays, clockWatch, log);
    housekeeping = started;
    const endReloading = tls && reloadCertificate(tls, publicListener.useCertificate, log);
    metrics.watch.queue(() => readQueue(ports));
    metrics.watch.keys(async () => ({ byDaysLeft: await ports.stores.apiKeys.countByDaysLeft(clock.now()) }));
    metrics.watch.database(storage.stats);
    const trouble = watchTrouble(randomness.id(), { store: ports.stores.dialing, clock, log });
    metrics.watch.process(async () => ({
      ready: (await isReady()) ? 1 : 0,
      dialerTrouble: trouble.seconds(),
      lastUsedLag: storage.lastUsedLag() / 1_000,
      clockAhead: (clockWatch.doubt()?.aheadBy ?? 0) / 1_000,
    }));
    const observer = { ...metrics.dialer, onResult: trouble.onResult };
    dialer = await startConfiguredDialer(config, ports, { log, observer, isTrusted: clockWatch.isTrusted });

    return {
      url: publicListener.url,
      managementUrl: managementListener?.url ?? null,
      servesConsole: Boolean(webConsole),
      firstUser,
      async close() {
        isDraining = true;
        endReloading?.();
        // During this delay, load balancers notice that this core isn't ready, and each response closes its connection.
        const drained = setTimeout(config.drainDelay * 1_000).then(publicListener.drain);
        await Promise.all([drained, dialer?.close(), started.close()]);
        await trouble.close();
        await managementListener?.drain();
        storage.finishRefusals();
        await refused.close();
        await storage.close();
      },
    };
  } catch (error) {
    for (const listener of listeners) listener.abort();
    await storage.close().catch(() => undefined);
    throw error;
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
    clock,
    random: () => randomFraction(randomness),
  });
}

async function readQueue(ports: Ports): Promise<{ due: number; oldestSeconds: number; held: number }> {
  const now = ports.clock.now();
  const { due, oldestDueAt } = await ports.stores.dialing.queue(now);
  const held = await ports.stores.protection.countHeld(now);
  return { due, held, oldestSeconds: oldestDueAt === null ? 0 : (now - oldestDueAt) / 1_000 };
}

/** Returns a number from 0 to 1, evenly distributed. */
function randomFraction(randomness: Randomness): number {
  return Buffer.from(randomness.bytes(4)).readUInt32BE() / 2 ** 32;
}
