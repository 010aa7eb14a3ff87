import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * Returns an HTTP proxy such as companies use. It sees which server a client connects to, but not what it sends. With null, it never
 * responds.
 */
export async function tunnel(status: number | null = 200) {
  const asked: string[] = [];
  const sockets = new Set<Duplex>();
  const proxy = createServer((_, response) => response.writeHead(500).end('Only CONNECT.'));
  const keep = (socket: Duplex) => sockets.add(socket.on('error', () => undefined));
  proxy.on('connect', ({ url = '', headers }, client) => {
    keep(client);
    asked.push(`${url} ${headers['proxy-authorization'] ?? ''}`.trim());
    if (status === null) return;
    if (status !== 200) {
      client.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const target = connect(Number(url.split(':')[1]), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connected\r\n\r\n');
      target.pipe(client).pipe(target);
    });
    keep(target);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
    proxy.closeAllConnections();
    await once(proxy, 'close');
  };
  return { asked, address: `127.0.0.1:${port}`, close };
}
