import { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import type { Logger } from 'pino';
import type { Clock } from '../../domain/ports.ts';
import { readTls, type Tls } from '../start/config.ts';

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Once browsers have seen this, they use only https for a year (RFC 6797), even if someone types http or follows an http link. */
const header = ['Strict-Transport-Security', 'max-age=31536000'] as const;

/** A response over TLS. It always has the header above, so that the header can't be used to distinguish responses. */
export class SecureResponse extends ServerResponse {
  override writeHead(status: number, headers?: Headers): this;
  override writeHead(status: number, message?: string, headers?: Headers): this;
  override writeHead(status: number, ...rest: [first?: string | Headers, second?: Headers]): this {
    const rawHeaders = rest.pop();
    // Setting the header would make Node write headers on a slower path.
    if (Array.isArray(rawHeaders)) return super.writeHead(status, [...rawHeaders, ...header]);
    this.setHeader(...header);
    return typeof rawHeaders === 'object' ? super.writeHead(status, rawHeaders) : super.writeHead(status);
  }
}

type Network = { underWay: Map<Socket, number>; waiting: Set<Socket> };

/**
 * Limits how many TLS handshakes of one network are in progress. Each takes the core a millisecond and costs the client nothing, so
 * hundreds at the same time would delay all other requests for a second.
 *
 * @param limits.stuck in ms
 */
export function limitHandshakes(server: TlsServer, limits: { atOnce: number; stuck: number }) {
  const networks = new Map<string, Network>();
  const networkBySocket = new WeakMap<Socket, Network>();
  // These listeners start a handshake, so call them when it's the connection's turn. Until then, only its first bytes are read.
  const secure = server.listeners('connection');
  server.removeAllListeners('connection');

  function start(socket: Socket, network: Network | null): void {
    network?.underWay.set(socket, performance.now());
    for (const listener of secure) Reflect.apply(listener, server, [socket]);
  }

  function finish(socket: Socket): void {
    const network = networkBySocket.get(socket);
    if (!network?.underWay.delete(socket)) return;
    const [next] = network.waiting;
    if (!next) return;
    network.waiting.delete(next);
    start(next, network);
  }

  return {
    finish,
    /** Starts the handshake of a new connection, or makes it wait until another handshake of its network has finished. */
    begin(socket: Socket, name: string | null) {
      if (name === null) return start(socket, null);
      const network = networks.get(name) ?? { underWay: new Map(), waiting: new Set() };
      networks.set(name, network);
      networkBySocket.set(socket, network);
      socket.once('close', () => {
        network.waiting.delete(socket);
        finish(socket);
        if (network.underWay.size === 0 && networks.get(name) === network) networks.delete(name);
      });
      if (network.underWay.size < limits.atOnce) return start(socket, network);
      network.waiting.add(socket);
      socket.on('error', () => socket.destroy());
    },
    /** Cuts off handshakes that take too long while others wait. */
    cutStuck(cut: (socket: Socket) => void): void {
      const latest = performance.now() - limits.stuck;
      for (const { underWay, waiting } of networks.values())
        if (waiting.size > 0) for (const [socket, since] of underWay) if (since < latest) cut(socket);
    },
  };
}

/**
 * In ms. The files are polled, because a watcher would keep watching the old file if a renewal replaces a symbolic link, and `watchFile`
 * would miss a renewal between the core's reading and its own first look.
 */
const interval = 5_000;
const day = 24 * 3_600_000;
/** In ms. Programs that renew certificates do it earlier, so a certificate that's closer to its end wasn't renewed. */
const renewalDue = 14 * day;

/** Uses renewed certificates without a restart. Logs at the start, after a renewal and daily if clients don't accept them, or soon won't. */
export function watchCertificate(tls: Tls, use: (renewed: Tls) => void, { log, clock }: { log: Logger; clock: Clock }) {
  const files = [tls.certFile, tls.keyFile];
  let current = tls;
  let seen = '';
  let ended = false;
  const complain = () => {
    const complaint = describeValidity(current, clock.now());
    if (complaint) log[complaint.level]({ file: tls.certFile }, complaint.text);
  };
  const look = async () => {
    const found = (await Promise.all(files.map(versionOf))).join();
    if (ended || found === seen) return;
    seen = found;
    try {
      const renewed = readTls(tls.certFile, tls.keyFile);
      if (renewed.cert.equals(current.cert) && renewed.key.equals(current.key)) return;
      use(renewed);
      current = renewed;
      log.info({ validTo: new X509Certificate(renewed.cert).validToDate.toISOString() }, 'certificate reloaded');
      complain();
    } catch (err) {
      // This also happens if only one of the two files has been replaced so far.
      log.warn({ err }, 'certificate not reloaded: still using the previous one');
    }
  };
  complain();
  const daily = setInterval(complain, day).unref();
  let next: NodeJS.Timeout;
  // Not an interval: if the file system hangs, looks that pile up would use all of Node's threads.
  const lookLater = () => {
    next = setTimeout(async () => {
      await look();
      if (!ended) lookLater();
    }, interval).unref();
  };
  lookLater();
  return {
    /** The Unix time in seconds at which the certificate in use expires. */
    expiresAt: () => new X509Certificate(current.cert).validToDate.getTime() / 1_000,
    end(): void {
      ended = true;
      clearInterval(daily);
      clearTimeout(next);
    },
  };
}

/** Returns a text that changes when the file is written or replaced, or when its permissions change. */
async function versionOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = await stat(file);
    return `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch (error) {
    return String(error);
  }
}

/** Says if clients refuse a certificate because of its dates, or will within two weeks; otherwise, returns null. */
export function describeValidity({ cert }: Pick<Tls, 'cert'>, now: number): { level: 'warn' | 'error'; text: string } | null {
  const { validFromDate: from, validToDate: to } = new X509Certificate(cert);
  if (to.getTime() <= now) return { level: 'error', text: `the TLS certificate expired at ${to.toISOString()}: renew it` };
  if (from.getTime() > now)
    return { level: 'error', text: `the TLS certificate isn't valid before ${from.toISOString()}: check the certificate and the clock` };
  return to.getTime() - now > renewalDue ? null : { level: 'warn', text: `the TLS certificate expires at ${to.toISOString()}: renew it` };
}
