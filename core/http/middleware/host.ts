import { Problem } from '../../domain/problem.ts';
import type { Middleware } from './context.ts';

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
