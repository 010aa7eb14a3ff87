import { randomUUID } from 'node:crypto';
import { isRequestId } from '#contract/calls.ts';
import { requestIdHeader } from '#contract/problems.ts';
import type { Middleware } from './context.ts';

/**
 * Gives each request an identifier, the client's own if it sent one, which log lines and the answer repeat. It is not a call's `requestId`,
 * though it has the same form: that is the caller's name for a call.
 */
export function requestId(): Middleware {
  const name = requestIdHeader.toLowerCase();
  return (ctx, next) => {
    const sent = ctx.req.headers[name];
    const id = typeof sent === 'string' && isRequestId(sent) ? sent : randomUUID();
    ctx.state.requestId = id;
    ctx.res.setHeader(requestIdHeader, id);
    return next();
  };
}
