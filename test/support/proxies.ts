import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Agent, type Dispatcher } from 'undici';
import { freePort } from '../../scripts/support/postgres.ts';
import { atTheEnd } from './clean-up.ts';
import { freshDirectory } from './databases.ts';
import { listenHere } from './listen.ts';

/**
 * A fault for one request: the proxy responds itself, the core's response is lost, nothing happens (`pass`), or the request waits for a
 * promise.
 */
export type Fault = { status: number; headers?: Record<string, string>; body?: string } | 'lose the response' | 'pass' | Promise<void>;
/** A fault for the next request whose path contains `path`, with this method if one is given. */
type FaultAt = { path: string; method?: string; fault: Fault };
export type Passed = { method: string; path: string; headers: IncomingMessage['headers']; body: string };

/** More faults than any screen has requests, so that all of its requests fail. */
export const outage: readonly Fault[] = Array.from({ length: 100 }, () => ({ status: 502 }));

/** A network between a client and a core. It applies the given faults to the next requests, and passes all others. */
export type FaultyProxy = { url: string; seen: Passed[]; faults: (Fault | FaultAt)[]; close(): Promise<void> };

/** @param prefix the path under which it serves the core */
export async function faultyProxy(target: string, prefix = ''): Promise<FaultyProxy> {
  const seen: Passed[] = [];
  const faults: (Fault | FaultAt)[] = [];
  const onwards = new Agent();
  const server = createHttpServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => incoming.socket.destroy());
  });

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const { method = '', url = '', headers } = incoming;
    seen.push({ method, path: url, headers, body: body.toString() });
    const fault = takeFault(faults, method, url);
    if (fault instanceof Promise) await fault;
    else if (typeof fault !== 'string') {
      outgoing.writeHead(fault.status, fault.headers).end(fault.body ?? '');
      return;
    }
    const { host: _, connection: __, 'content-length': ___, ...kept } = headers;
    const answer = await onwards.request({
      origin: target,
      // Unparsed, because a parsed URL would resolve dots.
      path: url.slice(prefix.length),
      method: method as Dispatcher.HttpMethod,
      headers: kept,
      body: body.length > 0 ? body : null,
    });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    if (fault === 'lose the response') incoming.socket.destroy();
    else {
      // Don't pass on `connection` and `keep-alive`, because they describe the connection to the core. If the client asked for its own
      // connection to be closed, Node.js must say so, because some clients wait for that.
      const { connection: _, 'keep-alive': __, ...headers } = answer.headers;
      outgoing.writeHead(answer.statusCode, headers).end(bytes);
    }
  }

  const { url, close } = await listenHere(server);
  return {
    ...{ url, seen, faults },
    async close() {
      await onwards.close();
      await close();
    },
  };
}

function takeFault(faults: (Fault | FaultAt)[], method: string, url: string): Fault {
  const matchesFault = (fault: Fault | FaultAt) =>
    typeof fault !== 'object' || !('path' in fault) || (url.includes(fault.path) && (fault.method ?? method) === method);
  const [fault = 'pass'] = faults.splice(faults.findIndex(matchesFault) >>> 0, 1);
  return typeof fault === 'object' && 'path' in fault ? fault.fault : fault;
}

/**
 * Returns an HTTP proxy such as companies use. It sees which server a client connects to, but not what it sends. With null, it never
 * responds.
 */
export async function tunnel(status: number | null = 200) {
  const asked: string[] = [];
  const sockets = new Set<Duplex>();
  const proxy = createHttpServer((_, response) => response.writeHead(500).end('Only CONNECT.'));
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
  const { port, close } = await listenHere(proxy);
  return {
    asked,
    address: `127.0.0.1:${port}`,
    close() {
      for (const socket of sockets) socket.destroy();
      return close();
    },
  };
}

/** An address that leads to a server, whose connections a test can watch, change and cut. */
export type Front = Awaited<ReturnType<typeof startFront>>;

/**
 * @param target the server's URL, unless `leadTo` sets it later, because the server must know the front's address first
 * @param pass changes what the server answers
 */
export async function startFront(target = '', pass = (bytes: Buffer): Buffer => bytes) {
  let serverUrl = target;
  /** A text that isn't let through. The connection that sends it is lost. */
  let held: { text: string; lose: () => void } | undefined;
  let awaited: { text: string; arrive: () => void } | undefined;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const { hostname, port } = new URL(serverUrl);
    const onwards = connect(Number(port), hostname);
    for (const socket of [client, onwards]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
    async function* asked(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const bytes of source) {
        if (awaited && bytes.includes(awaited.text)) awaited.arrive();
        if (held && bytes.includes(held.text)) {
          client.destroy();
          held.lose();
          return;
        }
        yield bytes;
      }
    }
    async function* answered(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const bytes of source) yield pass(bytes);
    }
    // If one side ends or fails, so does the other.
    pipeline(client, asked, onwards, answered, client, () => {
      client.destroy();
      onwards.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let closing: Promise<unknown> | undefined;
  /** Ends all connections, and refuses new ones. */
  async function close(): Promise<void> {
    if (server.listening) closing = once(server.close(), 'close');
    for (const socket of sockets) socket.destroy();
    await closing;
  }
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    leadTo(url: string): void {
      serverUrl = url;
    },
    /** Returns the address of the same server, but through this front. */
    toThrough: (url: string) => Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href,
    close,
    /** Accepts connections again. */
    async mend(): Promise<void> {
      if (!server.listening) await once(server.listen(port, '127.0.0.1'), 'listening');
    },
    /** Loses each connection that sends this text, just before the text arrives, until `release` is called. @returns when one is lost */
    hold: (text: string): Promise<void> =>
      new Promise((lose) => {
        held = { text, lose };
      }),
    release(): void {
      held = undefined;
    },
    /** @returns when a connection sends this text */
    carries: (text: string): Promise<void> =>
      new Promise((arrive) => {
        awaited = { text, arrive };
      }),
  };
}

/** The ports of the two cores, each on its own loopback address. */
type CorePorts = { port: number; managementPort: number };

type Kind = {
  file: string;
  /** Returns the rest of a machine's configuration, which includes the file from core/deploy. */
  around(snippet: string, directory: string): string;
  command(file: string): [string, ...string[]];
};

const temporaryPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`).join(' ');

const kinds = {
  nginx: {
    file: 'nginx.conf',
    around: (snippet) =>
      `daemon off; worker_processes 2; pid nginx.pid; error_log stderr; events {} http { access_log off; ${temporaryPaths}\n${snippet}\n}`,
    command: (file) => ['nginx', '-e', 'stderr', '-p', join(file, '..'), '-c', file],
  },
  haproxy: {
    file: 'haproxy.cfg',
    around: (snippet) => snippet,
    command: (file) => ['haproxy', '-db', '-f', file],
  },
  caddy: {
    file: 'Caddyfile',
    around: (snippet, directory) =>
      snippet
        .replace(/^\{$/m, `{\nadmin off\nauto_https disable_redirects\nstorage file_system ${directory}`)
        .replace('callkey.example.com', 'https://localhost:443'),
    command: (file) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
  },
} satisfies Record<string, Kind>;

type ProxyKind = keyof typeof kinds;
export const proxyKinds: readonly ProxyKind[] = ['nginx', 'haproxy', 'caddy'];

const running = new Set<ChildProcess>();
atTheEnd(() => {
  for (const child of running) child.kill('SIGKILL');
});

export function hasProxy(kind: ProxyKind): boolean {
  return spawnSync(kind, [kind === 'caddy' ? 'version' : '-v']).error === undefined;
}

/** Starts this proxy with its configuration from core/deploy, but with other ports and a certificate. */
export async function startProxy(kind: ProxyKind, ports: CorePorts, certificate: { TLS_CERT_FILE: string; TLS_KEY_FILE: string }) {
  const { file, around, command }: Kind = kinds[kind];
  const directory = freshDirectory();
  const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key } = certificate;
  const both = join(directory, 'both.pem');
  writeFileSync(both, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'));
  const port = await freePort();
  const shipped = readFileSync(fileURLToPath(new URL(`../../core/deploy/${file}`, import.meta.url)), 'utf8');
  const configured = around(shipped, directory)
    .replaceAll('/etc/ssl/callkey/cert-and-key.pem', both)
    .replaceAll('/etc/ssl/callkey/cert.pem', cert)
    .replaceAll('/etc/ssl/callkey/key.pem', key)
    .replaceAll(/\b443\b/g, String(port))
    .replaceAll(/\b8080\b/g, String(ports.port))
    .replaceAll(/\b8081\b/g, String(ports.managementPort));
  const configuration = join(directory, file);
  writeFileSync(configuration, configured);
  const [program, ...args] = command(configuration);
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env['PATH'], HOME: directory } });
  running.add(child);
  const stderrLines: string[] = [];
  child.stderr.on('data', (chunk) => stderrLines.push(String(chunk)));
  const ended = once(child, 'exit').finally(() => running.delete(child));
  return {
    url: `https://localhost:${port}`,
    /** All of its output on standard error. */
    stderrLines,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
