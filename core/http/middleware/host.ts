import { Problem } from '../../domain/problem.ts';
import type { Middleware } from './context.ts';

/**
 * Refuses a request without exactly one `Host` (RFC 9112 §3.2), and closes its connection. If it had two, a proxy might have routed it by
 * the other one. Node would refuse only a missing one, but without a body and a request ID.
 */
export const requireHost: Middleware = (ctx, next) => {
  const { headers, rawHeaders, httpVersion } = ctx.req;
  const isMissing = headers.host === undefined && httpVersion === '1.1';
  if (!isMissing && !isRepeated(rawHeaders)) return next();
  ctx.res.setHeader('Connection', 'close');
  throw new Problem('malformed-request', isMissing ? 'The request has no Host header.' : 'The request has several Host headers.');
};

function isRepeated(rawHeaders: readonly string[]): boolean {
  const isHost = (text: string, index: number) => index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host';
  return rawHeaders.findIndex(isHost) !== rawHeaders.findLastIndex(isHost);
}
