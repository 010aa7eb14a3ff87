import type { IncomingMessage } from 'node:http';
import { isSigned } from '#contract/calls/signature.ts';
import { limits } from '#contract/limits.ts';
import { dialerRoutes } from '#contract/routes/dialer.ts';
import { validate } from '#contract/validate.ts';
import { reportOutcome } from '../domain/calls/outcomes.ts';
import type { Ports } from '../domain/ports/ports.ts';
import { parseInTurn, readBytes } from './middleware/body.ts';
import type { Middleware } from './middleware/context.ts';
import { refuse } from './middleware/problems.ts';
import { setRequestId } from './middleware/request-id.ts';

const { path, method, body, status } = dialerRoutes.reportOutcome;

export function outcomeMethods(asked: string): string[] {
  return asked === path ? [method] : [];
}

/**
 * Accepts a provider's report of how a call ended. The signature is its only credential.
 *
 * @param secrets the signature may be made with any of them; empty if no provider reports outcomes
 */
export function outcomes(ports: Ports, secrets: readonly string[]): Middleware {
  const readReport = reportReader();
  return async (ctx, next) => {
    if (!outcomeMethods(ctx.path).includes(ctx.method)) return next();
    ctx.state.route = path;
    const bytes = await readReport(ctx.req).catch(() => null);
    const now = Math.floor(ports.clock.now() / 1_000);
    if (!bytes || !isSigned((name) => ctx.get(name), bytes, secrets, now)) return refuse(ctx);
    await reportOutcome(ports, await parseInTurn(bytes, (input) => validate(body, input), path));
    setRequestId(ctx);
    ctx.status = status;
  };
}

/**
 * The maximum number of reports over 8 KiB that are read at the same time. They're too long to be valid, but they're read to check their
 * signatures: if a provider with the right secret got a 401, it would look for an error in the secret. The number is limited, because
 * anyone can send such a report, and each takes up to 64 KiB until its signature is checked.
 */
const maxLarge = 100;

function reportReader(): (req: IncomingMessage) => Promise<Buffer> {
  let large = 0;
  return async (req) => {
    const isSmall = Number(req.headers['content-length']) <= limits.strangerBodyBytes;
    if (isSmall || large === maxLarge) return readBytes(req, limits.strangerBodyBytes);
    large++;
    try {
      return await readBytes(req, limits.bodyBytes);
    } finally {
      large--;
    }
  };
}
