import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { toNetworks } from '#contract/text/networks.ts';
import { peerAddress } from '../../http/middleware/every-request.ts';
import type { RequestObserver } from './pipelining.ts';
import { limitHandshakes } from './tls.ts';

/** `refused`: there was no room. `idle`: it made room for a new one. `unread`: its client didn't read. `waiting`: too many bytes waited. */
export const cutReasons = ['refused', 'idle', 'unread', 'waiting'] as const;
export type CutReason = (typeof cutReasons)[number];

/** Called when a connection is cut off. @param address the address of the client, or of the proxy in front of it */
export type ObserveCut = (reason: CutReason, address: string) => void;

export const connectionLimits = {
  /**
   * The maximum number of open connections from one network (an IPv4 address, or a /64 of IPv6), and in total. At the limit, a new
   * connection replaces an idle one. A limit that's too low would be worse than one that's too high: many integrators may share an address,
   * while a thousand connections take only about 10 MB.
   */
  perNetwork: 1_000,
  /**
   * The same limit for the range of addresses that one customer of a provider may have (a /24 of IPv4, or a /48 of IPv6). Without it, one
   * customer could use up the total. This many connections take about 100 MB if each has a body of 8 KiB.
   */
  perRange: 3_000,
  inAll: 10_000,
  /** How many TLS handshakes of one network may be in progress. While others wait, one over `stuckHandshake` ms is cut off. */
  handshakes: 32,
  stuckHandshake: 2_000,
  /** In bytes: the maximum amount of data that waits behind requests in progress. */
  waiting: 32 * 1024 * 1024,
  /** In ms. If no byte could be sent for this long, the client isn't reading: lost packets are sent again within seconds. */
  unread: 10_000,
  /**
   * In bytes: the maximum of `unsentBytes` in total. Over TLS, that's about 2,000 clients that don't read, which take 160 MB. Without this,
   * ten thousand clients from several networks could fill the memory, and keep it by reading a little now and then.
   */
  unsent: 256 * 1024 * 1024,
  lookEvery: 2_000,
  /** In ms. How long a draining listener keeps a new connection, because its client is about to send a request. */
  firstRequest: 1_000,
};

/** Files to keep free: for unopened database connections, one that's cut off, and the management listener, which must always respond. */
const kept = { database: 14, management: 8, cut: 2 };

/**
 * Returns how many connections each listener may have, given the limit on open files.
 *
 * @param files null if there's no limit, or the system doesn't report it
 * @param handoffs the maximum number of connections to the provider
 */
export function findRoom(files: { max: number; open: number } | null, handoffs: number) {
  const { inAll } = connectionLimits;
  const free = files ? files.max - files.open - handoffs - kept.database - kept.management - kept.cut : inAll;
  if (free >= inAll) return { public: inAll, management: inAll, openFiles: files?.max };
  return { public: Math.max(4, free), management: kept.management, openFiles: files?.max };
}

type Connection = {
  /** With TLS, `outer` carries `inner`. Without TLS, or until the handshake is complete, they're the same socket. */
  outer: Socket;
  inner: Socket;
  state: 'silent' | 'busy' | 'idle';
  groups: readonly ConnectionGroup[];
  /** The number of unsent response bytes at the last check, and when that number last changed. */
  unsent: number;
  unsentSince: number;
};

/** The connections of one network, or all. Those in `silent` haven't sent a request yet. Both sets are ordered, oldest first. */
type ConnectionGroup = { name: string; max: number; all: Set<Connection>; silent: Set<Connection> };

type Connections = {
  observe(socket: Socket): RequestObserver;
  /** Closes each connection as soon as it's idle. */
  end(): void;
  abort(): void;
};

/**
 * Limits what connections can use, so that no client can block the others: the number of connections, and how long a response may wait for
 * its client. `pipelining.ts` limits the requests that each has in progress.
 *
 * @param isProxy whether an address belongs to a trusted proxy. A proxy's connections come from many clients
 */
export function boundConnections(
  server: Server,
  isProxy: (address: string) => boolean,
  onCut: ObserveCut,
  limits: typeof connectionLimits,
): Connections {
  const everyone = createGroup('', limits.inAll);
  const networks = new Map<string, ConnectionGroup>();
  const connections = new WeakMap<Socket, Connection>();
  /** Connections by the client's address and port: the event `secureConnection` doesn't say to which TCP connection its socket belongs. */
  const unsecured = new Map<string, Connection>();
  const handshakes =
    server instanceof TlsServer ? limitHandshakes(server, { atOnce: limits.handshakes, stuck: limits.stuckHandshake }) : null;
  let isEnding = false;

  function groupsFor(address: string): readonly ConnectionGroup[] {
    if (isProxy(address)) return [everyone];
    const all = toNetworks(address);
    return [getGroup(all.at(0) ?? address, limits.perNetwork), getGroup(all.at(-1) ?? address, limits.perRange), everyone];
  }

  function getGroup(name: string, max: number): ConnectionGroup {
    const group = networks.get(name) ?? createGroup(name, max);
    networks.set(name, group);
    return group;
  }

  function cut(connection: Connection, reason: CutReason): void {
    leave(connection);
    onCut(reason, remoteAddress(connection.outer));
    connection.outer.destroy();
  }

  function admit(socket: Socket): void {
    const connection: Connection = {
      ...{ outer: socket, inner: socket, state: 'silent', groups: groupsFor(remoteAddress(socket)) },
      ...{ unsent: 0, unsentSince: 0 },
    };
    for (const group of connection.groups) {
      if (group.all.size < group.max) continue;
      const idle = findIdle(group);
      cut(idle ?? connection, idle ? 'idle' : 'refused');
      if (!idle) return;
    }
    for (const { all, silent } of connection.groups) {
      all.add(connection);
      silent.add(connection);
    }
    connections.set(socket, connection);
    socket.once('close', () => leave(connection));
    if (!handshakes) return;
    const name = remotePort(socket);
    unsecured.set(name, connection);
    socket.once('close', () => unsecured.delete(name));
    const [narrowest] = connection.groups;
    handshakes.begin(socket, narrowest === everyone ? null : (narrowest?.name ?? null));
  }

  function secure(socket: Socket): void {
    const connection = unsecured.get(remotePort(socket));
    if (!connection) return void socket.destroy();
    connection.inner = socket;
    connections.set(socket, connection);
    handshakes?.finish(connection.outer);
  }

  function leave(connection: Connection): void {
    for (const { name, all, silent } of connection.groups) {
      all.delete(connection);
      silent.delete(connection);
      if (networks.get(name)?.all.size === 0) networks.delete(name);
    }
  }

  function cutStuck(): void {
    handshakes?.cutStuck((socket) => {
      const connection = connections.get(socket);
      if (connection) cut(connection, 'idle');
    });
  }

  function cutUnread(): void {
    const now = performance.now();
    let total = 0;
    for (const connection of everyone.all) {
      const unsent = unsentBytes(connection.inner);
      if (unsent !== connection.unsent) Object.assign(connection, { unsent, unsentSince: now });
      if (unsent > 0 && now - connection.unsentSince >= limits.unread) cut(connection, 'unread');
      else total += unsent;
    }
    if (total <= limits.unsent) return;
    // Cut off the connections whose clients haven't read anything for the longest time.
    const waiting = [...everyone.all].filter(({ unsent }) => unsent > 0).sort((a, b) => a.unsentSince - b.unsentSince);
    for (const connection of waiting) {
      if (total <= limits.unsent) return;
      total -= connection.unsent;
      cut(connection, 'unread');
    }
  }

  server.on('connection', admit).on('secureConnection', secure);
  const observe = (socket: Socket): RequestObserver => {
    const connection = connections.get(socket);
    return {
      onStart() {
        if (!connection) return;
        if (connection.state === 'silent') for (const { silent } of connection.groups) silent.delete(connection);
        connection.state = 'busy';
      },
      onEnd() {
        if (connection) connection.state = 'idle';
        if (isEnding) socket.destroySoon();
      },
      onTooMuchWaiting() {
        if (connection) cut(connection, 'waiting');
      },
    };
  };

  const looking = setInterval(() => {
    cutUnread();
    cutStuck();
  }, limits.lookEvery).unref();
  server.once('close', () => clearInterval(looking));

  const abort = (among: Iterable<Connection>) => {
    for (const { outer } of among) outer.destroy();
  };
  return {
    observe,
    end() {
      isEnding = true;
      abort([...everyone.all].filter(({ state }) => state === 'idle'));
      setTimeout(() => abort(everyone.silent), limits.firstRequest).unref();
    },
    abort: () => abort(everyone.all),
  };
}

function createGroup(name: string, max: number): ConnectionGroup {
  return { name, max, all: new Set(), silent: new Set() };
}

function findIdle({ all, silent }: ConnectionGroup): Connection | undefined {
  const [oldest] = silent;
  return oldest ?? all.values().find(({ state }) => state === 'idle');
}

function remoteAddress(socket: Socket): string {
  return peerAddress({ socket });
}

function remotePort(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

/** Returns the bytes in Node's queue or not accepted by the system. Node counts a long response as one entry until its last byte. */
function unsentBytes(socket: Socket): number {
  if (socket.writableLength === 0) return 0;
  const handle: object | null = Reflect.get(socket, '_handle');
  return socket.writableLength + Number((handle && Reflect.get(handle, 'writeQueueSize')) ?? 0);
}
