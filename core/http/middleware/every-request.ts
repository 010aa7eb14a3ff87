import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv4, type Socket, SocketAddress } from 'node:net';
import type { Logger } from 'pino';
import proxyAddress from 'proxy-addr';
import { apiKeyHeader, keyExpiresHeader, rateLimitHeader, rateLimitPolicyHeader } from '#contract/headers.ts';
import { type ProblemBody, type ProblemCode, problemMediaType, problemTable, problemType, requestIdHeader } from '#contract/problems.ts';
import { isDecodable } from '#contract/server-address.ts';
import { Problem, type Quota, ResultUnknown, unauthorizedDetail } from '../../domain/problem.ts';
import type { Context, Middleware, ObserveRefusals } from './context.ts';
import { isSignedIn } from './session.ts';

type OnAnswered = (ctx: Context, milliseconds: number) => void;

/**
 * Turns everything that a request throws into a response; no other code does. It's one middleware, because each would add 0.3 µs to a refused
 * key, which takes 20.
 *
 * @param onAnswered gets the time from the request's arrival until its response was ready
 */
export function everyRequest(deps: {
  onNotServed: ObserveRefusals['onNotServed'];
  draining?: AbortSignal;
  onAnswered?: OnAnswered;
}): Middleware {
  const { onNotServed, draining, onAnswered } = deps;
  return async (ctx, next) => {
    const started = performance.now();
    // While the process drains, close connections, so that clients open their next one elsewhere.
    if (draining?.aborted) ctx.res.setHeader('Connection', 'close');
    try {
      requireHost(ctx);
      await next();
    } catch (error) {
      answerError(ctx, error, onNotServed);
    }
    onAnswered?.(ctx, performance.now() - started);
  };
}

/** Spares the console's requests a middleware that's only for other paths. */
export function outsideConsole(middleware: Middleware): Middleware {
  return (ctx, next) => (ctx.req.url?.startsWith('/console/') ? next() : middleware(ctx, next));
}

type ObserveRequest = (route: string, method: string, status: number, seconds: number) => void;

/** At `debug`, also logs fields. Of these, only the ID and the trace come from the client, and they can contain only certain characters. */
export function countRequests(observe: ObserveRequest, log: Logger): OnAnswered {
  const isLogged = log.isLevelEnabled('debug');
  return (ctx, milliseconds) => {
    const { route = 'none' } = ctx.state;
    const { method: sent = '' } = ctx.req;
    const method = knownMethods.has(sent) ? sent : 'other';
    const status = ctx.res.statusCode;
    observe(route, method, status, milliseconds / 1_000);
    if (!isLogged) return;
    log.debug({ ...requestNames(ctx), method, route, status, milliseconds: Math.round(milliseconds * 10) / 10 }, 'request');
  };
}

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

/** A host as in RFC 3986 §3.2.2, which may be empty, and possibly a port. */
const hostForm = /^(?:\[[0-9A-Za-z.:~_-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/**
 * Refuses a request without exactly one valid `Host` (RFC 9112 §3.2), and closes its connection. If it had two, or one with something
 * other than a host, a proxy might have routed it differently. Node would refuse only a missing one, but without a body and a request ID.
 */
function requireHost(ctx: Context): void {
  const { headers, rawHeaders, httpVersion } = ctx.req;
  const problem = describeHost(headers.host, rawHeaders, httpVersion);
  if (problem === null) return;
  ctx.res.setHeader('Connection', 'close');
  throw new Problem('malformed-request', problem);
}

function describeHost(host: string | undefined, rawHeaders: readonly string[], httpVersion: string): string | null {
  if (host === undefined) return httpVersion === '1.1' ? 'The request has no Host header.' : null;
  if (isRepeated(rawHeaders)) return 'The request has several Host headers.';
  return hostForm.test(host) ? null : "The Host header isn't valid.";
}

function isRepeated(rawHeaders: readonly string[]): boolean {
  const isHost = (text: string, index: number) => index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host';
  return rawHeaders.findIndex(isHost) !== rawHeaders.findLastIndex(isHost);
}

export function badEncoding(): Problem {
  return new Problem('malformed-request', 'The URL has invalid percent-encoding.');
}

/** Whether Koa can read a request's path: it throws for a URL that can't be parsed, such as `http://[::1`. */
export function hasReadablePath(ctx: Context): boolean {
  try {
    return ctx.path !== undefined;
  } catch {
    return false;
  }
}

export const requireReadablePath: Middleware = (ctx, next) => (hasReadablePath(ctx) ? next() : refuse(ctx));

/** Without a session, the response is the common 401, so that strangers don't learn which paths exist. A signed-in user gets the reason. */
export function notFound(listMethods: (path: string) => readonly string[]): Middleware {
  return async (ctx) => {
    if (!isSignedIn(ctx)) return refuse(ctx);
    if (!isDecodable(ctx.url)) throw badEncoding();
    const methods = listMethods(ctx.path);
    if (methods.length > 0) throw methodNotAllowed(methods);
    throw new Problem('not-found', 'Nothing exists at this path.');
  };
}

export function methodNotAllowed(methods: readonly string[]): Problem {
  const allow = [...new Set(methods)].join(', ');
  return new Problem('method-not-allowed', `Allowed methods: ${allow}.`, { allow });
}

const unauthorizedBody = jsonLine(toBody('unauthorized', unauthorizedDetail));
const problemHeaders = ['Content-Type', problemMediaType, 'Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];
const unauthorizedHeaders = ['WWW-Authenticate', 'ApiKey realm="callkey"', ...problemHeaders];

/**
 * Missing, malformed, unknown, expired and revoked keys, and all paths without a session, get the same bytes, so that no one learns which keys
 * or paths exist. (RFC 9110 §11.6.1 requires a challenge with each 401.)
 */
export function refuse(ctx: Context): void {
  // Omit the request ID, because it would make the bytes of two refusals differ.
  writePlain(ctx, 401, unauthorizedHeaders, unauthorizedBody);
}

/**
 * Whether a request has a key header. Only the key-authenticated endpoints read its value. Everywhere else, a program that sends a key gets
 * the common 401, as for any unknown path.
 */
export function hasKeyHeader(ctx: Context): boolean {
  return ctx.req.headers[apiKeyHeader.toLowerCase()] !== undefined;
}

/** With a newline at the end, a terminal's prompt starts on its own line. */
export function jsonLine(body: object): string {
  return `${JSON.stringify(body)}\n`;
}

/** Writes a response without Koa. */
export function write(ctx: Context, status: number, headers: readonly string[], body: string): void {
  const { keyExpiresAt } = ctx.state;
  const identified = [...headers, requestIdHeader, getRequestId(ctx)];
  writePlain(ctx, status, keyExpiresAt === undefined ? identified : [...identified, keyExpiresHeader, keyExpiresAt], body);
}

function writePlain(ctx: Context, status: number, headers: readonly string[], body: string): void {
  ctx.respond = false;
  const { res } = ctx;
  // Remove headers that were set for a different response.
  for (const name of res.getHeaderNames()) if (name !== 'connection') res.removeHeader(name);
  res.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(body))]);
  res.end(body);
}

/** The status that metrics count if there's no response. Clients never see it. */
export const notAnswered = 0;

function answerError(ctx: Context, error: unknown, onNotServed: ObserveRefusals['onNotServed']): void {
  if (ctx.res.headersSent) return;
  const isProblem = error instanceof Problem;
  if (isProblem && error.code === 'unauthorized') {
    refuse(ctx);
    return;
  }
  const isNotServed = !isProblem || error.status >= 500;
  const isLogged = isNotServed && onNotServed(error, { ...requestNames(ctx), route: ctx.state.route });
  if (error instanceof ResultUnknown) hangUp(ctx);
  else if (isProblem) answerProblem(ctx, error);
  else answerFault(ctx, isLogged);
}

/** Closes the connection as if the core had been killed, because any response could be wrong about what happened. */
function hangUp(ctx: Context): void {
  ctx.respond = false;
  ctx.res.statusCode = notAnswered;
  ctx.req.socket.destroy();
}

function answerFault(ctx: Context, isLogged: boolean): void {
  const body = toBody(
    'internal',
    isLogged
      ? "Something went wrong on the server. The operator can find it in the log under this request's ID."
      : 'Something went wrong on the server, for this and many other requests. The operator can find the first of them in the log.',
  );
  writeProblem(ctx, { ...body, instance: toInstance(getRequestId(ctx)) });
}

function answerProblem(ctx: Context, problem: Problem): void {
  const body = toBody(problem.code, problem.message);
  if (problem.errors) body.errors = [...problem.errors];
  const retryAfter = problem.retryAfter === undefined ? [] : ['Retry-After', String(problem.retryAfter)];
  const allow = problem.allow === undefined ? [] : ['Allow', problem.allow];
  writeProblem(ctx, body, [...retryAfter, ...allow, ...quotaHeaders(problem.quota)]);
}

/** draft-ietf-httpapi-ratelimit-headers-10. */
export function quotaHeaders(quota: Quota | undefined): string[] {
  if (quota === undefined) return [];
  const { callsPerDay, left, resetsIn } = quota;
  return [rateLimitPolicyHeader, `"day";q=${callsPerDay};w=86400`, rateLimitHeader, `"day";r=${left};t=${resetsIn}`];
}

export function writeProblem(ctx: Context, body: ProblemBody, more: readonly string[] = []): void {
  write(ctx, body.status, [...problemHeaders, ...more], jsonLine(body));
}

export function toBody(code: ProblemCode, detail: string): ProblemBody {
  const { title, status } = problemTable[code];
  return { type: problemType(code), title, status, detail };
}

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns the request ID as a URI reference (RFC 9457 §3.1.5). Keeps the client's own ID as it is. */
function toInstance(requestId: string): string {
  return uuidForm.test(requestId) ? `urn:uuid:${requestId}` : requestId;
}

const identifierForm = /^[A-Za-z0-9._~:-]{1,128}$/;

const idHeader = requestIdHeader.toLowerCase();

/** The client's own ID, if it sent one, in log lines and all responses except the common 401. A call's `requestId` is something else. */
function getRequestId({ req, state }: Context): string {
  const sent = req.headers[idHeader];
  state.requestId ??= typeof sent === 'string' && identifierForm.test(sent) ? sent : randomUUID();
  return state.requestId;
}

const traceparentForm = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}/;

/** What identifies a request in the log: its ID, and the client's trace if it sent one (W3C Trace Context §3.2). */
export function requestNames(ctx: Context): { requestId: string; traceparent?: string } {
  const requestId = getRequestId(ctx);
  const [traceparent] = traceparentForm.exec(String(ctx.req.headers['traceparent'])) ?? [];
  return traceparent === undefined ? { requestId } : { requestId, traceparent };
}

export function setRequestId(ctx: Context): void {
  ctx.set(requestIdHeader, getRequestId(ctx));
}

/**
 * Finds the last address in `X-Forwarded-For` that isn't a trusted proxy's, if the header comes from a trusted proxy; otherwise, the
 * connection's.
 *
 * @param onIgnored called once for each request whose header comes from another connection
 */
export function clientAddress(proxies: readonly string[], onIgnored: (peer: string) => void) {
  const isTrusted = proxyTrust(proxies);
  function findAddress(req: IncomingMessage): string {
    let address = peerAddress(req);
    const forwarded = req.headers['x-forwarded-for'];
    if (forwarded === undefined) return address;
    if (!isTrusted(address)) onIgnored(address);
    for (const hop of String(forwarded).split(',').reverse()) {
      if (!isTrusted(address)) break;
      if (hop.trim() === '') continue;
      const named = canonicalAddress(hop.trim());
      // A proxy may write something other than an address, such as `unknown`. Don't trust anything before that, because anyone could have
      // written it.
      if (named === null) break;
      address = named;
    }
    return address;
  }
  return {
    getClientAddress(ctx: Context): string {
      ctx.state.address ??= findAddress(ctx.req);
      return ctx.state.address;
    },
    /** Returns the address of a proxy that isn't trusted, if the request seems to come through one. */
    findIgnoredProxy({ req }: Context): string | undefined {
      const peer = peerAddress(req);
      return req.headers['x-forwarded-for'] === undefined || isTrusted(peer) ? undefined : peer;
    },
    isSecure(ctx: Context): boolean {
      if ('encrypted' in ctx.req.socket) return true;
      if (!isTrusted(peerAddress(ctx.req))) return false;
      // If proxies append to the header, the scheme of the client's connection comes first. The outermost proxy must replace the header,
      // because otherwise the client could choose the scheme: see docs/operations/proxy-and-tls.md.
      return ctx.get('X-Forwarded-Proto').split(',')[0]?.trim().toLowerCase() === 'https';
    },
  };
}

const mappedIPv4 = /^::ffff:(?=\d+\.)/;

export function peerAddress({ socket }: { socket: Socket }): string {
  return (socket.remoteAddress ?? '').replace(mappedIPv4, '');
}

export function proxyTrust(proxies: readonly string[]): (address: string) => boolean {
  const isTrusted = proxyAddress.compile([...proxies]);
  return (address) => isTrusted(address, 0);
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const withPort = /^(?:([\d.]+):\d+|\[([^\]]*)\](?::\d+)?)$/;

/**
 * Removes a port or zone, writes IPv6 as in RFC 5952, and IPv4-mapped IPv6 (RFC 4291 §2.5.5.2) as IPv4, so that throttles, activity and logs
 * recognize the same client.
 */
function canonicalAddress(text: string): string | null {
  const [, ipv4, ipv6] = withPort.exec(text) ?? [];
  const bare = ipv4 ?? ipv6 ?? text;
  if (isIPv4(bare)) return bare;
  if (isIP(bare) === 0) return null;
  return new SocketAddress({ address: bare, family: 'ipv6' }).address.replace(mappedIPv4, '');
}
