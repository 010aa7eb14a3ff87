import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';

/** In ms. A listener closes after it in any case. */
const patience = 1_000;

/** What Node has of a listening socket and of a connection. It documents neither. */
type Handle = { listen?(backlog: number): number; getpeername?(address: object): number };

/**
 * Closes a server's listening socket and resets no connection that is open already: the system resets those that wait to be accepted, and
 * their clients can't know whether their requests were executed.
 *
 * On Linux, a queue of length 0 has room for one connection. If a connection of our own waits in it, no other one does, and none can come:
 * the system drops the packets that open one, and clients send them again a second later, to a closed port.
 */
export async function closeListeningSocket(server: Server): Promise<void> {
  const until = performance.now() + patience;
  if (process.platform === 'linux' && handleOf(server)?.listen?.(0) === 0) {
    while (!(await ownConnectionWaits(server)) && performance.now() < until) await anotherTurn(server);
  }
  server.close();
}

/** Opens a connection. Whoever awaits this goes on before the event loop accepts anything. */
function ownConnectionWaits(server: Server): Promise<boolean> {
  const own = connect(ownAddress(server)).on('error', () => undefined);
  return new Promise((resolve) => {
    // The socket has asked the system by then, which opens a connection within the machine at once if there is room for it.
    process.nextTick(() => {
      resolve(handleOf(own)?.getpeername?.({}) === 0);
      setImmediate(() => own.destroy());
    });
  });
}

/** Until the queue has lost a connection: its place is free then. */
function anotherTurn(server: Server): Promise<void> {
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

function handleOf(owner: Server | Socket): Handle | null {
  return Reflect.get(owner, '_handle') ?? null;
}
