import type { Logger } from 'pino';
import { keyExpiresHeader } from '#contract/calls.ts';
import { type ProblemBody, type ProblemCode, problemMediaType, problemTable, problemType, requestIdHeader } from '#contract/problems.ts';
import { Problem, unauthorizedDetail } from '../domain/problem.ts';
import type { Context, Middleware } from './context.ts';
import { requestNames } from './request-id.ts';

const unauthorizedBody = jsonLine(bodyOf('unauthorized', unauthorizedDetail));
const problemHeaders = ['Content-Type', problemMediaType, 'Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];
const unauthorizedHeaders = ['WWW-Authenticate', 'ApiKey realm="callkey"', ...problemHeaders];

/**
 * The common 401. A missing, malformed, unknown, expired or revoked key and every path without a session get the same bytes, so that
 * nobody learns from them which keys or paths exist. (RFC 9110 §11.6.1 requires a challenge with each 401.)
 */
export function refuse(ctx: Context): void {
  // An identifier would make the bytes of two refusals differ.
  writePlain(ctx, 401, unauthorizedHeaders, unauthorizedBody);
}

/** A JSON body. It ends with a newline, so that a terminal's prompt comes after it. */
export function jsonLine(body: object): string {
  return `${JSON.stringify(body)}\n`;
}

/** Writes an answer past Koa, with the request's identifier and the end of a key that ends soon. */
export function write(ctx: Context, status: number, headers: readonly string[], body: string): void {
  const { requestId, keyExpiresAt } = ctx.state;
  const identified = requestId === undefined ? headers : [...headers, requestIdHeader, requestId];
  writePlain(ctx, status, keyExpiresAt === undefined ? identified : [...identified, keyExpiresHeader, keyExpiresAt], body);
}

function writePlain(ctx: Context, status: number, headers: readonly string[], body: string): void {
  ctx.respond = false;
  const { res } = ctx;
  // What was set for another answer.
  for (const name of res.getHeaderNames()) if (name !== 'connection') res.removeHeader(name);
  res.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(body))]);
  res.end(body);
}

/** Turns what a request throws into its answer. The one place that does. */
export function problems(log: Logger): Middleware {
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
  const { route } = ctx.state;
  if (!(error instanceof Problem)) {
    const { requestId } = ctx.state;
    log.error({ ...requestNames(ctx), route, err: error }, 'request failed');
    const body = bodyOf('internal', 'Something went wrong here. The operator finds it in the log under the identifier of this request.');
    writeProblem(ctx, { ...body, ...(requestId === undefined ? {} : { instance: instanceOf(requestId) }) });
    return;
  }
  if (error.code === 'unauthorized') {
    refuse(ctx);
    return;
  }
  if (error.status >= 500) log.warn({ ...requestNames(ctx), route, err: error }, 'request not served');
  const body = bodyOf(error.code, error.message);
  if (error.errors) body.errors = [...error.errors];
  const retryAfter = error.retryAfter === undefined ? [] : ['Retry-After', String(error.retryAfter)];
  const allow = error.allow === undefined ? [] : ['Allow', error.allow];
  writeProblem(ctx, body, [...retryAfter, ...allow]);
}

function writeProblem(ctx: Context, body: ProblemBody, more: readonly string[] = []): void {
  write(ctx, body.status, [...problemHeaders, ...more], jsonLine(body));
}

function bodyOf(code: ProblemCode, detail: string): ProblemBody {
  const { title, status } = problemTable[code];
  return { type: problemType(code), title, status, detail };
}

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A URI reference (RFC 9457 §3.1.5): a client's own identifier stays as it is. */
function instanceOf(requestId: string): string {
  return uuidForm.test(requestId) ? `urn:uuid:${requestId}` : requestId;
}
