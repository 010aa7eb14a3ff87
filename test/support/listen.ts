import { once } from 'node:events';
import type { Server } from 'node:net';

export type Listening = Awaited<ReturnType<typeof listenHere>>;

/** Makes a server listen on loopback. @returns its address, and a function that ends it and, if it's for HTTP, its connections */
export async function listenHere(server: Server & { closeAllConnections?(): void }, port = 0) {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const address = server.address();
  const chosen = typeof address === 'object' && address ? address.port : port;
  return {
    port: chosen,
    url: `http://127.0.0.1:${chosen}`,
    async close(): Promise<void> {
      if (!server.listening) return;
      const closed = once(server.close(), 'close');
      server.closeAllConnections?.();
      await closed;
    },
  };
}
