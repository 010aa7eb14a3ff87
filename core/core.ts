import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { Duration } from 'luxon';
import type { Logger } from 'pino';
import { createApp } from './app.ts';
import type { Config, DialerConfig } from './config.ts';
import { type Dialer, startDialer } from './dialer/loop.ts';
import { simulatedProvider } from './dialer/simulated.ts';
import { webhookProvider } from './dialer/webhook.ts';
import { operator } from './domain/audit.ts';
import type { Clock, Ports, Provider, Randomness } from './domain/ports.ts';
import { Problem } from './domain/problem.ts';
import { createUser } from './domain/users.ts';
import { startHousekeeping } from './housekeeping.ts';
import { createManagementApp } from './http/management.ts';
import { createMetrics } from './metrics.ts';
import { argon2Passwords } from './passwords.ts';
import { asDatabaseError, asListenError } from './start-errors.ts';
import { openStorage } from './storage/index.ts';

export type Core = {
  /** Where the public listener is reached. */
  url: string;
  managementUrl: string | null;
  /** Whom the first start made, with a one-time password; null on every later start. */
  firstUser: { email: string; password: string } | null;
  /** Goes on taking requests for `drainDelay` while it says that it is not ready; then lets accepted ones finish, for `drainDeadline` at most. */
  close(): Promise<void>;
};

export const drainDeadline = Duration.fromObject({ seconds: 10 });
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
  const storage = await usableStorage(config.database, () =>
    openStorage(config.database, clock, {
      onBatch: metrics.onBatch,
      onPlaced: () => dialer?.wake(),
      onBackgroundError: (err) => log.warn({ err }, 'background write failed'),
      onUnready: (err) => log.warn({ err }, 'not ready: a write would not be durable'),
    }),
  );
  const servings: Serving[] = [];
  try {
    const applied = await usableStorage(config.database, () => storage.migrate(outside.signal));
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

    const listen = async (name: 'public' | 'management', listener: RequestListener, where: Address, tls: Config['tls']) => {
      const serving = serve(listener, tls);
      servings.push(serving);
      await listening(serving.server, name, where);
      return { ...serving, url: urlOf(serving.server, where.host, tls !== null) };
    };
    const managed = management && config.management && (await listen('management', management.callback(), config.management, null));
    const served = await listen('public', app, config, config.tls);
    // After the listeners are up: a start that fails must not have shown its one password to nobody.
    const firstUser = await makeFirstUser(ports);
    const housekeeping = startHousekeeping(ports, config.retentionDays, log);
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
      url: served.url,
      managementUrl: managed?.url ?? null,
      firstUser,
      async close() {
        isDraining = true;
        // Load balancers have until then to see that this core is not ready, and every answer in between ends its connection.
        const drained = wait(config.drainDelay * 1_000).then(served.drain);
        await Promise.all([drained, dialer?.close(), housekeeping.close()]);
        await managed?.drain();
        await storage.close();
      },
    };
  } catch (error) {
    for (const { server } of servings) {
      server.close();
      server.closeAllConnections();
    }
    await storage.close().catch(() => undefined);
    throw error;
  }
}

/** @throws ConfigError that says why the database cannot be used */
async function usableStorage<Result>(location: Config['database'], use: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await use();
  } catch (error) {
    throw asDatabaseError(error, location);
  }
}

type Address = { host: string; port: number };

/** @throws ConfigError that says what is in the way */
async function listening(server: Server, name: 'public' | 'management', where: Address): Promise<void> {
  server.listen(where.port, where.host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw asListenError(error, name, where);
  }
}

type Serving = { server: Server; drain(): Promise<void> };

function serve(listener: RequestListener, tls: Config['tls']): Serving {
  // Slow clients are cut off; idle ones are kept for longer than most proxies keep them, so that it is not this side that hangs up.
  const options = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 5_000, keepAliveTimeout: 65_000 };
  const server = tls ? createHttpsServer({ ...options, ...tls }, listener) : createHttpServer(options, listener);

  // Node answers expectations that it does not know with 417, whoever asks: here, who is calling comes first.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));

  server.on('connect', (request, socket: Socket) => answerConnect(server, request, socket));

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

/**
 * Node hands over a bare socket for CONNECT (RFC 9110 §9.3.6), and closes it where nobody wants it. It is answered like every other method,
 * so that nothing tells it apart. (Without a listener for them, upgrades come as the requests that they are.)
 */
function answerConnect(server: Server, request: IncomingMessage, socket: Socket): void {
  socket.on('error', () => socket.destroy());
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  server.emit('request', request, response);
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
    const { password } = await createUser(ports, operator, input, null);
    return password === null ? null : { email: firstUserEmail, password };
  } catch (error) {
    // Another core that started at the same moment was first.
    if (error instanceof Problem && error.code === 'conflict') return null;
    throw error;
  }
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
