import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Agent, type Dispatcher } from 'undici';

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
  const server = createServer((incoming, outgoing) => {
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

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    faults,
    async close() {
      await onwards.close();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function takeFault(faults: (Fault | FaultAt)[], method: string, url: string): Fault {
  const matchesFault = (fault: Fault | FaultAt) =>
    typeof fault !== 'object' || !('path' in fault) || (url.includes(fault.path) && (fault.method ?? method) === method);
  const [fault = 'pass'] = faults.splice(faults.findIndex(matchesFault) >>> 0, 1);
  return typeof fault === 'object' && 'path' in fault ? fault.fault : fault;
}
