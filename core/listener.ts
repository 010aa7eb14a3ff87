import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { Server as TlsServer } from 'node:tls';
import { Duration } from 'luxon';
import type { Tls } from './config.ts';
import { asListenError } from './start-errors.ts';

/** How long accepted requests may take once a listener drains. */
export const drainDeadline = Duration.fromObject({ seconds: 10 });

export type Listener = {
  url: string;
  /** Takes no new connections, and closes the open ones when every accepted request is answered, or at the deadline. */
  drain(): Promise<void>;
  /** For new connections. */
  useCertificate(tls: Tls): void;
  /** Closes every connection now. */
  abort(): void;
};

type Address = { name: 'public' | 'management'; host: string; port: number };

/** @throws ConfigError that names the variable to change */
export async function listen(handler: RequestListener, address: Address, tls: Tls | null): Promise<Listener> {
  const server = createServer(handler, tls);
  const drain = drainOf(server);
  server.listen(address.port, address.host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw asListenError(error, address.name, address);
  }
  return {
    url: urlOf(server, address.host, tls !== null),
    drain,
    useCertificate(renewed) {
      if (server instanceof TlsServer) server.setSecureContext(renewed);
    },
    abort() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function createServer(handler: RequestListener, tls: Tls | null): Server {
  // Slow clients are cut off. Idle connections outlive those of most proxies, so that a proxy never sends on one that has just been closed.
  const options = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 5_000, keepAliveTimeout: 65_000 };
  const server = tls ? createHttpsServer({ ...options, ...tls }, handler) : createHttpServer(options, handler);
  // Node would answer 417 to an unknown expectation before anybody has checked the key.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  answerConnectsInTurn(server);
  return server;
}

/** `server.close()` closes idle connections, but keeps a busy one open for `keepAliveTimeout` after its answer. */
function drainOf(server: Server): () => Promise<void> {
  let open = 0;
  let isDraining = false;
  const closeWhenDone = () => {
    if (isDraining && open === 0) server.closeAllConnections();
  };
  server.on('request', (_request, response) => {
    open++;
    response.once('close', () => {
      open--;
      closeWhenDone();
    });
  });
  return async () => {
    const closed = once(server, 'close');
    // Right after the event loop has taken all connections that waited: those that wait when the socket closes are reset, and a proxy
    // cannot know whether the requests that it sent on them were executed.
    await setImmediate();
    server.close();
    isDraining = true;
    closeWhenDone();
    const deadline = setTimeout(() => server.closeAllConnections(), drainDeadline.toMillis());
    await closed;
    clearTimeout(deadline);
  };
}

/**
 * Answers CONNECT like every other method, so that nothing tells it apart: Node hands over a bare socket (RFC 9110 §9.3.6), and closes it
 * where nobody listens. It keeps no order for it either, and throws where an earlier request of the connection still has the socket: one
 * packet of a stranger would end the core. Upgrades arrive as ordinary requests while nobody listens for them.
 */
function answerConnectsInTurn(server: Server): void {
  const lastResponses = new WeakMap<Socket, ServerResponse>();
  server.on('request', ({ socket }, response) => lastResponses.set(socket, response));
  server.on('connect', (request, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    const earlier = lastResponses.get(socket);
    if (!earlier || earlier.closed) answerConnect(server, request, socket);
    else earlier.once('close', () => answerConnect(server, request, socket));
  });
}

function answerConnect(server: Server, request: IncomingMessage, socket: Socket): void {
  // The earlier answer may have ended the connection.
  if (!socket.writable) return;
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  server.emit('request', request, response);
}

function urlOf(server: Server, host: string, isSecure: boolean): string {
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return `${isSecure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
