import type { Logger } from 'pino';
import { Problem } from '../../domain/problem.ts';
import type { Context, Middleware, ObserveRefusals } from './context.ts';
import { answerError, refuse, requestNames } from './responses.ts';
import { isSignedIn } from './session.ts';

type OnAnswered = (ctx: Context, milliseconds: number) => void;

/**
 * What every request goes through first. Turns everything that it throws into a response; no other code does. It's one middleware, because
 * each would add 0.3 µs to a refused key, which takes 20.
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

/** Observes a request. @param seconds from the request's arrival until its response was ready */
export type ObserveRequest = (route: string, method: string, status: number, seconds: number) => void;

/**
 * Counts each request, and logs the fields on an allow-list at `debug`. Of these, only the ID and the trace come from the client, and they
 * can contain only certain characters.
 */
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
 * Refuses a request without exactly one valid `Host` (RFC 9112 §3.2), and closes its connection. If it had two, or something else than a
 * host in it, a proxy might have routed it differently. Node would refuse only a missing one, but without a body and a request ID.
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

/** Whether a path or query contains only valid percent-encoding. */
export function isDecodable(path: string): boolean {
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
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

/** Treats a URL that can't be parsed like an unknown path. */
export const requireReadablePath: Middleware = (ctx, next) => (hasReadablePath(ctx) ? next() : refuse(ctx));

/**
 * Handles requests that don't match a route. Without a session, the response is the common 401, so that strangers don't learn which paths
 * exist. A signed-in user gets the reason.
 *
 * @param listMethods returns the methods that a path supports
 */
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
