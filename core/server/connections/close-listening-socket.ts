import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';

/** In ms. A listener always closes after this time. */
const maxDrainTime = 1_000;

/** Node's internal handle of a listening socket and of a connection. Node doesn't document either. */
type Handle = { listen?(backlog: number): number; getpeername?(address: object): number };

/**
 * Closes a server's listening socket without resetting connections that wait to be accepted. If the system reset them, their clients
 * couldn't know whether their requests were executed.
 *
 * On Linux, a queue of length 0 has room for one connection. If one of our own connections is waiting in it, there's no room for others, so
 * the system drops the packets that would open them. Clients send those packets again a second later, when the port is closed.
 */
export async function closeListeningSocket(server: Server): Promise<void> {
  const until = performance.now() + maxDrainTime;
  if (process.platform === 'linux' && getHandle(server)?.listen?.(0) === 0) {
    while (!(await queueOwnConnection(server)) && performance.now() < until) await waitForNextTurn(server);
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
function waitForNextTurn(server: Server): Promise<void> {
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
