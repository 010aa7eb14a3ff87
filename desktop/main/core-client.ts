import { getCACertificates } from 'node:tls';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { session } from 'electron';
import type { Dispatcher } from 'undici';
import { invalidProxyAddress, readProxyAddress } from '#contract/proxies.ts';
import { computeClockLead, failed, findFailure, readAnswer, withEtags, withTenancyHeader } from '../core-requests.ts';
import type { Failure, Result } from '../ipc.ts';
import { CookieJar, type SessionCookies } from './cookie-jar.ts';
import { describePath, log } from './log.ts';
import { toNetworkFailure, UnusableProxy } from './network-errors.ts';

export type CoreClient = ReturnType<typeof coreClient>;

const timeoutsMs = { answer: 15_000, file: 60_000 };
const decompress = promisify(brotliDecompress);
const maxAnswerBytes = 8 * 1024 * 1024;

/** Creates a client that doesn't follow redirects, because they could send the session's cookie to another server. */
export function coreClient(server: string, stored: SessionCookies = {}) {
  const { origin, pathname } = new URL(server);
  const jar = new CookieJar(stored);
  const fullPath = (path: string) => pathname.replace(/\/$/, '') + path;
  const cookieHeader = () => (jar.header() === '' ? {} : { cookie: jar.header() });

  let choice: ProxyChoice = { proxy: '' };
  let connections: Dispatcher | undefined;
  /** Uses the same connections until the proxy changes, as when a laptop moves to another network. */
  async function connect(): Promise<Dispatcher> {
    const chosen = await chooseProxy(server);
    if (chosen.proxy !== choice.proxy) {
      void connections?.close();
      connections = undefined;
    }
    choice = chosen;
    connections ??= await openConnections(server, chosen);
    return connections;
  }

  let lead: number | null = null;
  const exchange = withEtags(async ({ method, path, body }, more) => {
    const options: Dispatcher.RequestOptions = {
      origin,
      path: fullPath(path),
      method,
      headers: {
        accept: 'application/json',
        'accept-encoding': 'br',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...cookieHeader(),
        ...more,
      },
      body: body === undefined ? null : JSON.stringify(body),
    };
    const { statusCode, headers, body: answer } = await (await connect()).request(options);
    const text = await decode(Buffer.from(await answer.arrayBuffer()), headers['content-encoding']);
    jar.update(headers['set-cookie'] ?? []);
    lead = computeClockLead(headers['date']?.toString()) ?? lead;
    return { status: statusCode, header: (name) => headers[name]?.toString(), text };
  });

  const inTenancy = withTenancyHeader(async (request, headers) => {
    const result = await exchange(request, headers).then(
      (answer) => readAnswer(answer, request.schema),
      (error: unknown) => failed(toNetworkFailure(error, server, choice.proxy)),
    );
    if (!result.ok) logFailure(server, request, result.failure);
    return result;
  });

  /** Requests a file. Its size and the time that it takes aren't limited. */
  async function openFile(path: string, signal: AbortSignal): Promise<Result<AsyncIterable<Uint8Array>>> {
    const options = {
      origin,
      path: fullPath(path),
      method: 'GET',
      headers: { ...cookieHeader(), ...inTenancy.headers() },
      signal,
    } as const;
    let proxy = '';
    const request = async () => {
      const chosen = await chooseProxy(server);
      ({ proxy } = chosen);
      const fileConnections = await openConnections(server, chosen, { maxResponseSize: -1, bodyTimeout: timeoutsMs.file });
      const response = fileConnections.request(options);
      // This closes the connection only once the response has ended.
      void fileConnections.close();
      return response;
    };
    const answer = await request().catch((error: unknown) => toNetworkFailure(error, server, proxy));
    if ('kind' in answer) return failed(answer);
    const { statusCode: status, headers, body } = answer;
    jar.update(headers['set-cookie'] ?? []);
    const header = (name: string) => headers[name]?.toString();
    const failure = findFailure({ status, header, text: status === 200 ? '' : await body.text() });
    if (failure) body.destroy();
    return failure ?? { ok: true, value: body };
  }

  return {
    server,
    send: inTenancy.send,
    setTenancy: inTenancy.setTenancy,
    openFile,
    clockLead: () => lead,
    /** To be stored. */
    cookies: () => jar.all(),
    close: async () => connections?.destroy(),
  };
}

function logFailure(server: string, { method, path }: { method: string; path: string }, failure: Failure): void {
  const code = failure.kind === 'refused' ? failure.code : failure.kind === 'unreachable' ? failure.detail : undefined;
  log('request failed', { server, request: `${method} ${describePath(path)}`, kind: failure.kind, reason: code });
}

/** Decodes a response. @throws if it exceeds the size limit */
async function decode(bytes: Buffer, encoding: unknown): Promise<string> {
  return (encoding === 'br' ? await decompress(bytes, { maxOutputLength: maxAnswerBytes }) : bytes).toString();
}

/** Loads undici and the system's certificates only when needed: they'd delay the start, and most remembered servers are never contacted. */
async function openConnections(server: string, { proxy, ...bypass }: ProxyChoice, more: object = {}): Promise<Dispatcher> {
  const { createConnections } = await import('#contract/core-connections.ts');
  return createConnections({
    server,
    agent: {
      connections: 4,
      pipelining: 1,
      headersTimeout: timeoutsMs.answer,
      bodyTimeout: timeoutsMs.answer,
      maxResponseSize: maxAnswerBytes,
      ...more,
    },
    // Trust the system's certificates, too, because self-hosters install their own certificate authority there.
    ca: [...getCACertificates('default'), ...getCACertificates('system')],
    proxyTimeout: timeoutsMs.answer,
    proxy,
    ...bypass,
  });
}

/** How to reach a server: the proxy's address, or empty for a direct connection, and the servers that don't use it. */
type ProxyChoice = { proxy: string; noProxy?: string };

const schemes: Readonly<Record<string, string>> = { PROXY: 'http', HTTPS: 'https', SOCKS5: 'socks5' };

/** Chooses the proxy for a server: the one in HTTPS_PROXY, as in the command line, or else the system's. @throws UnusableProxy */
async function chooseProxy(server: string): Promise<ProxyChoice> {
  if (server.startsWith('http:')) return { proxy: '' };
  const proxy = readProxyAddress(process.env);
  if (proxy === null) throw new UnusableProxy(invalidProxyAddress);
  if (proxy !== '') return { proxy };
  // Returns a list such as `PROXY proxy.example.com:3128; DIRECT`, in order of preference.
  const [first = ''] = (await session.defaultSession.resolveProxy(server)).split(';');
  const [kind = '', host = ''] = first.trim().split(' ');
  if (kind === '' || kind === 'DIRECT') return { proxy: '' };
  const scheme = schemes[kind];
  if (scheme === undefined) throw new UnusableProxy(unsupportedProxy(kind === 'SOCKS' ? 'SOCKS4' : kind, host));
  return { proxy: `${scheme}://${host}`, noProxy: '' };
}

function unsupportedProxy(kind: string, host: string): string {
  return `The proxy ${host} in this computer’s settings uses ${kind}, which the console doesn’t support. Use an HTTP, HTTPS or SOCKS5 proxy.`;
}
