import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { requestIdHeader } from '#contract/problems.ts';
import { Problem } from '../../domain/problem.ts';
import type { Context, Middleware } from './context.ts';

const identifierForm = /^[A-Za-z0-9._~:-]{1,128}$/;

/**
 * Gives each request an ID: the client's own, if it sent one. It appears in log lines and in all responses except the common 401. Don't
 * confuse it with a call's `requestId`, which is the caller's ID for a call.
 */
export function requestId(): Middleware {
  const name = requestIdHeader.toLowerCase();
  return (ctx, next) => {
    const sent = ctx.req.headers[name];
    const id = typeof sent === 'string' && identifierForm.test(sent) ? sent : randomUUID();
    // Don't set it as a header yet, because Node writes headers more slowly if one is set before `writeHead`.
    ctx.state.requestId = id;
    return next();
  };
}

const traceparentForm = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}/;

/** Returns the fields that identify a request in the log: its ID, and the client's trace if it sent one (W3C Trace Context §3.2). */
export function requestNames(ctx: Context): { requestId: string | undefined; traceparent?: string } {
  const { requestId } = ctx.state;
  const [traceparent] = traceparentForm.exec(String(ctx.req.headers['traceparent'])) ?? [];
  return traceparent === undefined ? { requestId } : { requestId, traceparent };
}

/** Sets the request ID's header on a response that Koa writes. */
export function setRequestId(ctx: Context): void {
  if (ctx.state.requestId !== undefined) ctx.set(requestIdHeader, ctx.state.requestId);
}

/** Observes a request. @param seconds from the request's arrival until its response was ready */
export type ObserveRequest = (route: string, method: string, status: number, seconds: number) => void;

/**
 * Counts each request, and logs the fields on an allow-list at `debug`. Of these, only the ID and the trace come from the client, and they
 * can contain only certain characters.
 */
export function requestMetrics(observe: ObserveRequest, log: Logger): Middleware {
  const isLogged = log.isLevelEnabled('debug');
  return async (ctx, next) => {
    const started = performance.now();
    await next();
    const { route = 'none' } = ctx.state;
    const method = knownMethods.has(ctx.method) ? ctx.method : 'other';
    const status = ctx.res.statusCode;
    const milliseconds = performance.now() - started;
    observe(route, method, status, milliseconds / 1_000);
    if (!isLogged) return;
    log.debug({ ...requestNames(ctx), method, route, status, milliseconds: Math.round(milliseconds * 10) / 10 }, 'request');
  };
}

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

/** While the process drains, closes connections, so that clients open their next one elsewhere. */
export function closeWhileDraining(isDraining: () => boolean): Middleware {
  return (ctx, next) => {
    if (isDraining()) ctx.res.setHeader('Connection', 'close');
    return next();
  };
}

/** A host as in RFC 3986 §3.2.2, which may be empty, and possibly a port. */
const hostForm = /^(?:\[[0-9A-Za-z.:~_-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/**
 * Refuses a request without exactly one valid `Host` (RFC 9112 §3.2), and closes its connection. If it had two, or something else than a
 * host in it, a proxy might have routed it differently. Node would refuse only a missing one, but without a body and a request ID.
 */
export const requireHost: Middleware = (ctx, next) => {
  const { headers, rawHeaders, httpVersion } = ctx.req;
  const problem = describeHost(headers.host, rawHeaders, httpVersion);
  if (problem === null) return next();
  ctx.res.setHeader('Connection', 'close');
  throw new Problem('malformed-request', problem);
};

function describeHost(host: string | undefined, rawHeaders: readonly string[], httpVersion: string): string | null {
  if (host === undefined) return httpVersion === '1.1' ? 'The request has no Host header.' : null;
  if (isRepeated(rawHeaders)) return 'The request has several Host headers.';
  return hostForm.test(host) ? null : "The Host header isn't valid.";
}

function isRepeated(rawHeaders: readonly string[]): boolean {
  const isHost = (text: string, index: number) => index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host';
  return rawHeaders.findIndex(isHost) !== rawHeaders.findLastIndex(isHost);
}
