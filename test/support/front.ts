import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream';

/** An address that's known before the core that it leads to has started. */
export type Front = { url: string; leadTo(coreUrl: string): void; close(): Promise<void> };

export async function startFront(): Promise<Front> {
  let target = '';
  const open = new Set<Socket>();
  const server = createServer((incoming) => {
    const { hostname, port } = new URL(target);
    const outgoing = connect(Number(port), hostname);
    for (const socket of [incoming, outgoing]) {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
    }
    // If one side ends or fails, so does the other.
    pipeline(incoming, outgoing, incoming, () => {
      incoming.destroy();
      outgoing.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo(coreUrl) {
      target = coreUrl;
    },
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, 'close');
    },
  };
}
