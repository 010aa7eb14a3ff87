import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { Trial } from './environment.ts';

/** One address in front of several servers, of which one at a time is used, as a service's address is. */
export async function switchboard(trial: Trial, firstPort: number): Promise<{ port: number; switchTo(port: number): void }> {
  const sockets = new Set<Socket>();
  let target = firstPort;
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const hangUp = () => {
    for (const socket of sockets) socket.destroy();
  };
  trial.cleanup.defer(() => {
    server.close();
    hangUp();
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    switchTo(port) {
      target = port;
      hangUp();
    },
  };
}
