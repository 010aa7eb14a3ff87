import { outcomeSchema } from '#contract/dialer.ts';
import { isSigned, signatureHeader } from '#contract/signature.ts';
import { reportOutcome } from '../domain/outcomes.ts';
import { readBytes, readJson } from './body.ts';
import type { HttpDeps, Step } from './context.ts';
import { refuse } from './problems.ts';

/** What a provider says has become of a call. Its signature is all that lets it in. */
export function takeOutcome({ ports, dialerSecrets }: HttpDeps): Step {
  return async (ctx) => {
    const bytes = await readBytes(ctx).catch(() => null);
    const seconds = ports.clock.now().toUnixInteger();
    if (!bytes || !isSigned(ctx.get(signatureHeader), bytes, dialerSecrets, seconds)) return refuse(ctx);
    await reportOutcome(ports, readJson(bytes, outcomeSchema));
    ctx.status = 204;
  };
}
