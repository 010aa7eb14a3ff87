import type { Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';

type Handshakes = {
  /** Starts the handshake of a new connection, or makes it wait until another handshake of its network has finished. */
  begin(socket: Socket, network: string | null): void;
  finish(socket: Socket): void;
  /** Cuts off handshakes that take too long while others wait. */
  cutStuck(cut: (socket: Socket) => void): void;
};

type Network = { underWay: Map<Socket, number>; waiting: Set<Socket> };

/**
 * Limits how many TLS handshakes of one network are in progress. Each takes the core a millisecond and costs the client nothing, so
 * hundreds at the same time would delay all other requests for a second.
 *
 * @param limits.stuck in ms
 */
export function limitHandshakes(server: TlsServer, limits: { atOnce: number; stuck: number }): Handshakes {
  const networks = new Map<string, Network>();
  const networkBySocket = new WeakMap<Socket, Network>();
  // These listeners start a handshake. Call them only when the connection's turn has come. Until then, nothing reads its data, except for
  // the first bytes.
  const secure = server.listeners('connection');
  server.removeAllListeners('connection');

  function start(socket: Socket, network: Network | null): void {
    network?.underWay.set(socket, performance.now());
    for (const listener of secure) Reflect.apply(listener, server, [socket]);
  }

  function finish(socket: Socket): void {
    const network = networkBySocket.get(socket);
    if (!network?.underWay.delete(socket)) return;
    const [next] = network.waiting;
    if (!next) return;
    network.waiting.delete(next);
    start(next, network);
  }

  return {
    finish,
    begin(socket, name) {
      if (name === null) return start(socket, null);
      const network = networks.get(name) ?? { underWay: new Map(), waiting: new Set() };
      networks.set(name, network);
      networkBySocket.set(socket, network);
      socket.once('close', () => {
        network.waiting.delete(socket);
        finish(socket);
        if (network.underWay.size === 0 && networks.get(name) === network) networks.delete(name);
      });
      if (network.underWay.size < limits.atOnce) return start(socket, network);
      network.waiting.add(socket);
      socket.on('error', () => socket.destroy());
    },
    cutStuck(cut) {
      const latest = performance.now() - limits.stuck;
      for (const { underWay, waiting } of networks.values())
        if (waiting.size > 0) for (const [socket, since] of underWay) if (since < latest) cut(socket);
    },
  };
}
