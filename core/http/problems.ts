import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { type ProblemBody, type ProblemCode, problemMediaType, problems, problemType } from '#contract/problems.ts';
import { Problem, unauthorizedDetail } from '../domain/problem.ts';
import type { Context, Step } from './context.ts';

const unauthorizedBody = JSON.stringify(bodyOf('unauthorized', unauthorizedDetail));
const unauthorizedHeaders = [
  ...['WWW-Authenticate', 'ApiKey realm="callkey"'],
  ...['Content-Type', problemMediaType],
  ...['Cache-Control', 'no-store'],
  ...['X-Content-Type-Options', 'nosniff'],
];

/**
 * The one answer to whoever is not let in: the same bytes for a missing, malformed, unknown, expired or revoked key and for every
 * other path, so that nothing can be learned from it. (RFC 9110 §11.6.1 wants a challenge with each 401.)
 */
export function refuse(ctx: Context): void {
  writeAtOnce(ctx, 401, unauthorizedHeaders, unauthorizedBody);
}

/** Writes an answer past Koa, which sets, looks up and takes back headers one by one: for answers that are given by the thousand. */
export function writeAtOnce(ctx: Context, status: number, headers: readonly string[], body: string): void {
  ctx.respond = false;
  const { res } = ctx;
  for (const name of res.getHeaderNames()) if (name !== 'connection') res.removeHeader(name);
  res.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(body))]);
  res.end(body);
}

/** Writes whatever a request came to grief on. The one place that does. */
export function answeringProblems(log: Logger): Step {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      answer(ctx, error, log);
    }
  };
}

function answer(ctx: Context, error: unknown, log: Logger): void {
  if (ctx.res.headersSent) return;
  if (!(error instanceof Problem)) {
    const requestId = requestIdOf(ctx);
    log.error({ requestId, route: ctx.state.route, err: error }, 'request failed');
    write(ctx, { ...bodyOf('internal', 'Something went wrong here. The operator finds it in the log under this request id.'), requestId });
    return;
  }
  if (error.code === 'unauthorized') {
    refuse(ctx);
    return;
  }
  if (error.status >= 500) log.warn({ requestId: requestIdOf(ctx), route: ctx.state.route, err: error }, 'request not served');
  const body = bodyOf(error.code, error.message);
  if (error.errors) body.errors = [...error.errors];
  if (error.retryAfter !== undefined) ctx.set('Retry-After', String(error.retryAfter));
  if (error.allow !== undefined) ctx.set('Allow', error.allow);
  write(ctx, body);
}

function write(ctx: Context, body: ProblemBody): void {
  ctx.status = body.status;
  ctx.type = problemMediaType;
  ctx.set('Cache-Control', 'no-store');
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.body = JSON.stringify(body);
}

function bodyOf(code: ProblemCode, detail: string): ProblemBody {
  const { title, status } = problems[code];
  return { type: problemType(code), title, status, detail };
}

/** Made only where something is logged: most requests never need one. */
export function requestIdOf(ctx: Context): string {
  ctx.state.requestId ??= randomUUID();
  return ctx.state.requestId;
}
