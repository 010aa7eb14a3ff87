import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type CutReason, connectionLimits } from '../../core/server/connections/connections.ts';
import { type Listener, listen } from '../../core/server/connections/listener.ts';
import { readTls } from '../../core/server/start/config.ts';
import { selfSignedCertificate } from './certificate.ts';

export type Started = { request: IncomingMessage; response: ServerResponse };

/** Opens a listener whose requests wait until a test responds to them, and which records what happens to its connections. */
export async function open({ isSecure = false, limits = {}, proxy = '' } = {}, handler?: RequestListener) {
  const started: Started[] = [];
  const cuts: `${CutReason} ${string}`[] = [];
  const certificate = isSecure ? selfSignedCertificate() : null;
  const listener = await listen(
    handler ?? ((request, response) => void started.push({ request, response })),
    { name: 'public', host: '0.0.0.0', port: 0 },
    {
      tls: certificate && readTls(certificate.TLS_CERT_FILE, certificate.TLS_KEY_FILE),
      isProxy: (address) => address === proxy,
      onCut: (reason, address) => cuts.push(`${reason} ${address}`),
      limits: { ...connectionLimits, ...limits },
    },
  );
  return { listener, started, cuts };
}

/** Opens a connection. Its client reads everything that it receives. */
export async function client(listener: Listener, localAddress = '127.0.0.1') {
  const { protocol, port } = new URL(listener.url);
  const options = { host: '127.0.0.1', port: Number(port), localAddress };
  const socket: Socket = protocol === 'https:' ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
  const seen = { text: '', isClosed: false };
  socket.on('data', (chunk) => {
    seen.text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    seen.isClosed = true;
  });
  await once(socket, protocol === 'https:' ? 'secureConnect' : 'connect');
  return { socket, seen };
}

export const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
export const post = (path: string, body: string, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
export const statuses = (text: string) => text.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9));
