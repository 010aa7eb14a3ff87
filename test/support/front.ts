import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream';

/** An address that's known before the server that it leads to has started, and whose connections can be cut. */
export type Front = {
  url: string;
  leadTo(serverUrl: string): void;
  /** Returns the address of the same server, but through this front. */
  toThrough(serverUrl: string): string;
  /** Ends all connections, and refuses new ones. */
  cut(): Promise<void>;
  mend(): Promise<void>;
  close(): Promise<void>;
};

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
  const { port } = server.address() as AddressInfo;
  const cut = async () => {
    server.close();
    for (const socket of open) socket.destroy();
    await once(server, 'close');
  };
  return {
    url: `http://127.0.0.1:${port}`,
    leadTo(serverUrl) {
      target = serverUrl;
    },
    toThrough: (serverUrl) => Object.assign(new URL(serverUrl), { hostname: '127.0.0.1', port: String(port) }).href,
    cut,
    async mend() {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    close: cut,
  };
}
