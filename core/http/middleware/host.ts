import { Problem } from '../../domain/problem.ts';
import type { Middleware } from './context.ts';

/**
 * Refuses an HTTP/1.1 request without a `Host` (RFC 9112 §3.2), and closes its connection. Node would do the same, but without a body and
 * a request ID.
 */
export const requireHost: Middleware = (ctx, next) => {
  if (ctx.req.headers.host !== undefined || ctx.req.httpVersion !== '1.1') return next();
  ctx.res.setHeader('Connection', 'close');
  throw new Problem('malformed-request', 'The request has no Host header.');
};
