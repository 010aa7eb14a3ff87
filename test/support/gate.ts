import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { freePort } from '../../scripts/support/postgres.ts';

export type Gate = Awaited<ReturnType<typeof startGate>>;

/** Opens a port that leads to a node. It can lose what the node is told, such as the second phase of a commit. */
export async function startGate(port: number) {
  /** A text that isn't let through. The connection that sends it is lost. */
  let held: { text: string; lose: () => void } | undefined;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const node = connect(port, '127.0.0.1');
    for (const socket of [client, node]) {
      sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(socket);
          client.destroy();
          node.destroy();
        });
    }
    client.on('data', (bytes: Buffer) => {
      if (held === undefined || !bytes.includes(held.text)) return void node.write(bytes);
      client.destroy();
      held.lose();
    });
    node.on('data', (bytes: Buffer) => client.write(bytes));
  });
  const own = await freePort();
  let closing: Promise<unknown> | undefined;
  const listen = async () => {
    if (!server.listening) await once(server.listen(own, '127.0.0.1'), 'listening');
  };
  await listen();
  return {
    port: own,
    listen,
    /** Loses each connection that sends this text, just before the text arrives, until the gate is opened. @returns when one is lost */
    hold: (text: string): Promise<void> =>
      new Promise((lose) => {
        held = { text, lose };
      }),
    open(): void {
      held = undefined;
    },
    /** Loses all connections, and refuses new ones. */
    async close(): Promise<void> {
      if (server.listening) closing = once(server.close(), 'close');
      for (const socket of sockets) socket.destroy();
      await closing;
    },
  };
}
