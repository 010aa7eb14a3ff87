import { randomUUID } from 'node:crypto';
import { requestIdHeader } from '#contract/problems.ts';
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
