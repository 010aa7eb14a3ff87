import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { Duration } from 'luxon';
import type { Tls } from '../start/config.ts';
import { toListenError } from '../start/start-errors.ts';
import { boundConnections, connectionLimits, type ObserveCut } from './connections.ts';
import { serveOneAtATime } from './pipelining.ts';
import { SecureResponse } from './tls.ts';

/** How long accepted requests may take after a listener starts draining. */
export const drainDeadline = Duration.fromObject({ seconds: 10 });

export type Listener = {
  url: string;
  /** Stops accepting connections, and closes the open ones once every accepted request has its response, or at the deadline. */
  drain(): Promise<void>;
  useCertificate(tls: Tls): void;
  abort(): void;
};

type Address = { name: 'public' | 'management'; host: string; port: number };

type Outside = {
  tls: Tls | null;
  isProxy(address: string): boolean;
  onCut: ObserveCut;
  /** Tests use lower limits. */
  limits?: typeof connectionLimits;
};

/** @throws ConfigError that names the variable to change */
export async function listen(handler: RequestListener, address: Address, outside: Outside): Promise<Listener> {
  const { tls, isProxy, onCut, limits = connectionLimits } = outside;
  const server = createServer(handler, tls);
  const connections = boundConnections(server, isProxy, onCut, limits);
  // After `boundConnections`, so that its listener adds a connection before this one asks for it.
  serveOneAtATime(server, connections.observe, limits.waiting);
  server.listen(address.port, address.host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw toListenError(error, address.name, address);
  }
  return {
    url: formatUrl(server, address.host, tls !== null),
    async drain() {
      const closed = once(server, 'close');
      await closeListeningSocket(server);
      connections.end();
      const deadline = setTimeout(connections.abort, drainDeadline.toMillis());
      await closed;
      clearTimeout(deadline);
    },
    useCertificate(renewed) {
      if (server instanceof TlsServer) server.setSecureContext(renewed);
    },
    abort() {
      server.close();
      connections.abort();
    },
  };
}

function createServer(handler: RequestListener, tls: Tls | null): Server {
  // Slow clients are cut off. Idle connections stay open longer than most proxies keep them, so that a proxy never sends a request on a
  // connection that was just closed.
  const options = {
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    handshakeTimeout: 10_000,
    connectionsCheckingInterval: 5_000,
    keepAliveTimeout: 65_000,
    // Requests without a body, such as cancels, don't get a stream to read, end and close. They're `destroyed` from the start.
    optimizeEmptyRequests: true,
    // See `requireHost`.
    requireHostHeader: false,
    // For TLS. Without TLS, it's always on.
    allowHalfOpen: true,
  };
  const server = tls
    ? createHttpsServer({ ...options, ...tls, ServerResponse: SecureResponse }, handler)
    : createHttpServer(options, handler);
  // Without this, Node would end the connection as soon as the client has closed its side, and drop the response in progress.
  Object.assign(server, { httpAllowHalfOpen: true });
  // Without this, Node would return 417 for an unknown expectation before the key has been checked.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return server;
}

function formatUrl(server: Server, host: string, isSecure: boolean): string {
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return `${isSecure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** In ms. A listener always closes after this time. */
const maxDrainTime = 5_000;

/** Node's internal handle of a listening socket and of a connection. Node doesn't document either. */
type Handle = { listen?(backlog: number): number; getpeername?(address: object): number };

/**
 * Closes a server's listening socket without resetting connections that wait to be accepted. If the system reset them, their clients
 * couldn't know whether their requests were executed.
 *
 * On Linux, a queue of length 0 has room for one connection. If one of our own connections is waiting in it, there's no room for others, so
 * the system drops the packets that would open them. Clients send those packets again a second later, when the port is closed.
 */
async function closeListeningSocket(server: Server): Promise<void> {
  const until = performance.now() + maxDrainTime;
  if (process.platform === 'linux' && getHandle(server)?.listen?.(0) === 0) {
    while (!(await queueOwnConnection(server)) && performance.now() < until) await waitForNextIteration(server);
  }
  server.close();
}

/** Opens one of our own connections. The code that awaits this continues before the event loop accepts any connection. */
function queueOwnConnection(server: Server): Promise<boolean> {
  const own = connect(ownAddress(server)).on('error', () => undefined);
  return new Promise((resolve) => {
    // By the next tick, the socket has asked the system to connect. Within one machine, this succeeds immediately if there's room in the
    // queue.
    process.nextTick(() => {
      resolve(getHandle(own)?.getpeername?.({}) === 0);
      setImmediate(() => own.destroy());
    });
  });
}

/** Waits until a connection has left the queue and made room. */
function waitForNextIteration(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      server.off('connection', go);
      clearImmediate(turn);
      resolve();
    };
    const turn = setImmediate(go);
    server.once('connection', go);
  });
}

function ownAddress(server: Server): { host: string; port: number } {
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error("The server isn't listening on a port.");
  const loopback: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return { host: loopback[bound.address] ?? bound.address, port: bound.port };
}

function getHandle(owner: Server | Socket): Handle | null {
  return Reflect.get(owner, '_handle') ?? null;
}
