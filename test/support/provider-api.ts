import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';

/** A request from a recipe to its provider. */
export type ProviderRequest = { path: string; headers: IncomingMessage['headers']; body: string };

/** Starts a provider's API on this machine. Responds to POST requests with these statuses in order, and then with 201. */
export async function startProviderApi() {
  const requests: ProviderRequest[] = [];
  const statuses: (number | [status: number, body: string])[] = [];
  /** The response to a GET request, by path. */
  const resources: Record<string, object> = { '/ari/channels': [] };
  const server: Server = createServer(async (request, response) => {
    const path = request.url ?? '';
    if (request.method === 'GET') {
      return response
        .writeHead(resources[path] ? 200 : 404, { 'Content-Type': 'application/json' })
        .end(JSON.stringify(resources[path] ?? {}));
    }
    requests.push({ path, headers: request.headers, body: await text(request) });
    const next = statuses.shift() ?? 201;
    const [status, body] = typeof next === 'number' ? [next, '{"message":"the number is not valid"}'] : next;
    return response.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return { requests, statuses, resources, server, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}` };
}

/** Opens the events of Asterisk's WebSocket in RFC 6455 frames. */
export async function openEvents(server: Server): Promise<{ send: (event: object | string) => void; end: () => void }> {
  const [request, socket]: [IncomingMessage, Socket] = await new Promise((resolve) => {
    server.once('upgrade', (...upgrade) => resolve([upgrade[0], upgrade[1] as Socket]));
  });
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  expect(request.url).to.equal('/ari/events?app=callkey&subscribeAll=true');
  const send = (event: object | string) => {
    const data = Buffer.from(typeof event === 'string' ? event : JSON.stringify(event));
    const length = data.length < 126 ? [data.length] : [126, data.length >> 8, data.length & 255];
    socket.write(Buffer.concat([Buffer.from([0x81, ...length]), data]));
  };
  return { send, end: () => socket.destroy() };
}
