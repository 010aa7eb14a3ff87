import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import { dialerRoutes, optOutSchema } from '#contract/calls/dialer.ts';
import { checkSignature } from '#contract/calls/signature.ts';
import { limits } from '#contract/limits.ts';
import { validate } from '#contract/validate.ts';
import { reportOptOut, reportOutcome } from '../domain/calls/outcomes.ts';
import type { Ports } from '../domain/ports.ts';
import { invalidBody, Problem } from '../domain/problem.ts';
import { parseInTurn, readBytes } from './middleware/body.ts';
import type { Middleware } from './middleware/context.ts';
import { refuse, setRequestId } from './middleware/every-request.ts';

const { path, method, body, status } = dialerRoutes.reportOutcome;

export function outcomeMethods(asked: string): string[] {
  return asked === path ? [method] : [];
}

/** A report's signature is its only credential. @param secrets it may be made with any of them; empty if no provider reports outcomes */
export function outcomes(ports: Ports, secrets: readonly string[]): Middleware {
  const readReport = reportReader();
  return async (ctx, next) => {
    if (!outcomeMethods(ctx.path).includes(ctx.method)) return next();
    ctx.state.route = path;
    const check = checkSignature((name) => ctx.get(name), secrets, Math.floor(ports.clock.now() / 1_000));
    const search = new OptOutSearch();
    const onChunk = (chunk: Buffer) => {
      check.update(chunk);
      search.update(chunk);
    };
    const bytes = await readReport(ctx.req, onChunk).catch((error: unknown) => ({ error }));
    if (!check.isSigned()) return refuse(ctx);
    if ('error' in bytes) return reportUnreadable(ports, search, bytes.error);
    const input = await parseInTurn(bytes, path).catch((error: unknown) => reportUnreadable(ports, search, error));
    const outcome = validate(body, input);
    if (!outcome.ok) {
      const optOut = validate(optOutSchema, input);
      if (optOut.ok) await reportOptOut(ports, optOut.data.handoffId);
      throw invalidBody(outcome.errors, optOut.ok ? listed : '');
    }
    await reportOutcome(ports, outcome.data);
    setRequestId(ctx);
    // 204, because the response has no body.
    ctx.status = status;
  };
}

const listed = "The number was added to the do-not-call list, but the outcome wasn't recorded. ";

/** Applies the opt-out of a report that's too long, or that isn't JSON, for example because its detail has a line break. */
async function reportUnreadable(ports: Ports, { handoffId, isOptOut }: OptOutSearch, error: unknown): Promise<never> {
  const isFinal = error instanceof Problem && (error.code === 'too-large' || error.code === 'malformed-request');
  if (!isFinal || !isOptOut || handoffId === undefined) throw error;
  await reportOptOut(ports, handoffId);
  throw new Problem(error.code, listed + error.message);
}

/** Finds an opt-out in a report that can't be parsed. The names of its fields can't be within a text, because JSON escapes quotes. */
class OptOutSearch {
  #last = '';
  handoffId: string | undefined;
  isOptOut = false;

  update(chunk: Buffer): void {
    const text = this.#last + chunk.toString('latin1');
    this.handoffId ??= /"handoffId"\s*:\s*"([^"\\]+)"/.exec(text)?.[1];
    this.isOptOut ||= /"optOut"\s*:\s*"?true\b/i.test(text);
    this.#last = text.slice(-200);
  }
}

/** Reports over 8 KiB that are read at the same time. Anyone can send one, and each takes up to 64 KiB until its signature is checked. */
const maxLarge = 100;

/**
 * Passes the whole report to `onChunk`, even if it doesn't keep it, so that its signature can be checked: if a provider with the right secret
 * got a 401, it would look for an error in the secret.
 */
function reportReader() {
  let large = 0;

  return async (req: IncomingMessage, onChunk: (chunk: Buffer) => void): Promise<Buffer> => {
    const isSmall = Number(req.headers['content-length']) <= limits.strangerBodyBytes;
    const isLarge = !isSmall && large < maxLarge;
    let bytes = readBytes(req, isLarge ? limits.bodyBytes : limits.strangerBodyBytes, onChunk);
    if (isLarge) {
      large++;
      bytes = bytes.finally(() => large--);
    }
    return bytes.catch(async (error) => {
      if (!(error instanceof Problem) || error.code !== 'too-large') throw error;
      await finished(req);
      if (isLarge) throw new Problem('too-large', `A report must be at most ${limits.bodyBytes} bytes.`);
      throw new Problem('unavailable', 'Too many large reports are arriving. Repeat this one shortly.', { retryAfter: 2 });
    });
  };
}
