import { isSigned } from '#contract/calls/signature.ts';
import { limits } from '#contract/limits.ts';
import { dialerRoutes } from '#contract/routes/dialer.ts';
import { reportOutcome } from '../domain/calls/outcomes.ts';
import type { Ports } from '../domain/ports/ports.ts';
import { readBytes, readJson } from './middleware/body.ts';
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
  return async (ctx, next) => {
    if (!outcomeMethods(ctx.path).includes(ctx.method)) return next();
    ctx.state.route = path;
    const bytes = await readBytes(ctx.req, limits.strangerBodyBytes).catch(() => null);
    const now = Math.floor(ports.clock.now() / 1_000);
    if (!bytes || !isSigned((name) => ctx.get(name), bytes, secrets, now)) return refuse(ctx);
    await reportOutcome(ports, readJson(bytes, body));
    setRequestId(ctx);
    ctx.status = status;
  };
}
