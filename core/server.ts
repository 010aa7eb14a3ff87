import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Duration } from 'luxon';
import type { Logger } from 'pino';
import { createApp } from './app.ts';
import type { Config, DialerConfig } from './config.ts';
import { type Dialer, startDialer } from './dialer/loop.ts';
import { simulatedProvider } from './dialer/simulated.ts';
import { webhookProvider } from './dialer/webhook.ts';
import { operator } from './domain/audit.ts';
import type { Provider } from './domain/dialing.ts';
import type { Clock, Ports, Randomness } from './domain/ports.ts';
import { Problem } from './domain/problem.ts';
import { eraseOldContacts } from './domain/retention.ts';
import { sessionLimits } from './domain/sessions.ts';
import { addUser } from './domain/users.ts';
import { createManagementApp } from './http/management.ts';
import { createMetrics } from './metrics.ts';
import { argon2Passwords } from './passwords.ts';
import { openStorage, type Storage } from './storage/index.ts';

export type Core = {
  /** Where the public listener is reached. */
  url: string;
  managementUrl: string | null;
  /** Whom the first start made, with a one-time password; null on every later start. */
  firstUser: { email: string; password: string } | null;
  /** Lets accepted requests finish, for `drainDeadline` at most, and lets go of everything. */
  close(): Promise<void>;
};

export const drainDeadline = Duration.fromObject({ seconds: 10 });
const sweepEvery = Duration.fromObject({ hours: 1 });
const firstUserEmail = 'admin@localhost';

/**
 * Brings up a core: schema, first user, listeners.
 *
 * @param outside.signal gives up while the schema is being brought up to date, or another core is doing so
 */
export async function startCore(
  config: Config,
  sessionSecrets: readonly string[],
  outside: { log: Logger; clock: Clock; randomness: Randomness; signal?: AbortSignal },
): Promise<Core> {
  const { log, clock, randomness } = outside;
  const metrics = createMetrics();
  let dialer: Dialer | undefined;
  const storage = openStorage(config.database, clock, {
    onBatch: metrics.onBatch,
    onPlaced: () => dialer?.wake(),
    onBackgroundError: (err) => log.warn({ err }, 'background write failed'),
  });
  const servings: Serving[] = [];
  try {
    const applied = await storage.migrate(outside.signal);
    if (applied.length > 0) log.info({ migrations: applied }, 'schema migrated');
    for (const risk of await storage.database.risks()) log.error(risk);
    for (const pool of storage.pools) metrics.watchPool(pool.name, pool.use);

    const ports: Ports = {
      clock,
      randomness,
      stores: storage.stores,
      throttle: storage.throttle,
      passwords: argon2Passwords(randomness),
      onOutcome: metrics.dialer.onOutcome,
    };

    let isDraining = false;
    const app = createApp({
      ports,
      log,
      observeRequest: metrics.onRequest,
      isDraining: () => isDraining,
      sessionSecrets,
      trustedProxies: config.trustedProxies,
      dialerSecrets: config.dialer.kind === 'webhook' ? config.dialer.secrets : [],
    });
    const management =
      config.management &&
      createManagementApp({ registry: metrics.registry, isReady: async () => !isDraining && (await storage.isReady()), log });

    const listen = async (listener: RequestListener, where: { host: string; port: number }, tls: Config['tls']) => {
      const serving = serve(listener, tls);
      const { server } = serving;
      servings.push(serving);
      server.listen(where.port, where.host);
      await once(server, 'listening');
      return urlOf(server, where.host, tls !== null);
    };
    const managementUrl = management && config.management && (await listen(management.callback(), config.management, null));
    const url = await listen(app, config, config.tls);
    // After the listeners are up: a start that fails must not have shown its one password to nobody.
    const firstUser = await makeFirstUser(ports);
    const sweeping = sweep(ports, storage.throttle, config.retentionDays, log);
    metrics.watchQueue(() => queueLook(ports));
    const provider = providerOf(config.dialer, clock);
    if (provider && config.dialer.kind !== 'off') {
      const { concurrency } = config.dialer;
      dialer = startDialer({
        store: ports.stores.dialing,
        provider,
        concurrency,
        clock,
        random: () => randomOf(randomness),
        log,
        observer: metrics.dialer,
      });
    }
    announceDialer(config.dialer, log);

    return {
      url,
      managementUrl,
      firstUser,
      async close() {
        isDraining = true;
        clearInterval(sweeping);
        await Promise.all([dialer?.close(), ...servings.map(({ drain }) => drain())]);
        await storage.close();
      },
    };
  } catch (error) {
    for (const { server } of servings) server.close();
    await storage.close().catch(() => undefined);
    throw error;
  }
}

type Serving = { server: Server; drain(): Promise<void> };

function serve(listener: RequestListener, tls: Config['tls']): Serving {
  // Slow clients are cut off; idle ones are kept for longer than most proxies keep them, so that it is not this side that hangs up.
  const options = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 5_000, keepAliveTimeout: 65_000 };
  const server = tls ? createHttpsServer({ ...options, ...tls }, listener) : createHttpServer(options, listener);

  // Node answers expectations that it does not know with 417, whoever asks: here, who is calling comes first.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));

  let underWay = 0;
  let isDraining = false;
  const hangUpWhenDone = () => {
    if (isDraining && underWay === 0) server.closeAllConnections();
  };
  server.on('request', (_request, response) => {
    underWay++;
    response.once('close', () => {
      underWay--;
      hangUpWhenDone();
    });
  });

  return {
    server,
    /** Takes no new connections, and ends those there are once every accepted request is answered, or at the deadline. */
    async drain() {
      const closed = once(server, 'close');
      server.close();
      isDraining = true;
      hangUpWhenDone();
      const deadline = setTimeout(() => server.closeAllConnections(), drainDeadline.toMillis());
      await closed;
      clearTimeout(deadline);
    },
  };
}

function urlOf(server: Server, host: string, secure: boolean): string {
  const address = server.address();
  const { port } = address as AddressInfo;
  return `${secure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Somebody has to be able to sign in first: a staff user, on a database without users. */
async function makeFirstUser(ports: Ports): Promise<Core['firstUser']> {
  if ((await ports.stores.users.count()) > 0) return null;
  const input = { email: firstUserEmail, name: 'Administrator', userType: 'staff', accountId: null, partnerId: null } as const;
  try {
    const { password } = await addUser(ports, operator, input, null);
    return password === null ? null : { email: firstUserEmail, password };
  } catch (error) {
    // Another core that started at the same moment was first.
    if (error instanceof Problem && error.code === 'conflict') return null;
    throw error;
  }
}

/** Each hour: forgets sessions and throttle counters that are over, sums up tallies, and erases what is past its retention. */
function sweep(ports: Ports, throttle: Storage['throttle'], retentionDays: number | null, log: Logger): NodeJS.Timeout {
  const sweepOnce = async () => {
    const now = ports.clock.now();
    await ports.stores.sessions.sweep({ lastSeenBefore: now.minus(sessionLimits.idle), startedBefore: now.minus(sessionLimits.absolute) });
    await throttle.sweep();
    await ports.stores.apiKeys.foldTallies();
    if (retentionDays === null) return;
    const erased = await eraseOldContacts(ports.stores.retention, ports.clock, retentionDays);
    if (erased > 0) log.info({ calls: erased }, 'contact data erased');
  };
  return setInterval(() => sweepOnce().catch((err) => log.warn({ err }, 'sweeping failed')), sweepEvery.toMillis()).unref();
}

function providerOf(dialer: DialerConfig, clock: Clock): Provider | null {
  switch (dialer.kind) {
    case 'off':
      return null;
    case 'simulated':
      return simulatedProvider(clock);
    case 'webhook':
      return webhookProvider(dialer, clock);
  }
}

function announceDialer(dialer: DialerConfig, log: Logger): void {
  if (dialer.kind === 'off') log.warn('DIALER is off: calls stay queued');
  if (dialer.kind === 'simulated') log.warn('DIALER is simulated: no phone rings, and outcomes are made up');
  if (dialer.kind === 'webhook')
    log.info({ provider: new URL(dialer.url).origin, deduplicates: dialer.deduplicates }, 'dialing through a webhook');
}

async function queueLook(ports: Ports): Promise<{ due: number; oldestSeconds: number }> {
  const now = ports.clock.now().toMillis();
  const { due, oldestDueAt } = await ports.stores.dialing.queue(now);
  return { due, oldestSeconds: oldestDueAt === null ? 0 : (now - oldestDueAt) / 1_000 };
}

/** Evenly from 0 to 1. */
function randomOf(randomness: Randomness): number {
  return Buffer.from(randomness.bytes(4)).readUInt32BE() / 2 ** 32;
}
