import { Problem } from '../domain/problem.ts';
import type { HttpDeps, Step } from './context.ts';

/**
 * Refuses what another site makes a browser send (OWASP Cross-Site Request Forgery Prevention Cheat Sheet): Fetch Metadata where the
 * browser sends it, Origin where it does not. Programs send neither, and no other site can make them send anything.
 */
export function csrf(deps: HttpDeps): Step {
  return async (ctx, next) => {
    const site = ctx.get('Sec-Fetch-Site');
    const origin = ctx.get('Origin');
    const own = `${deps.isSecure(ctx) ? 'https' : 'http'}://${ctx.get('Host')}`;
    const crosses = site === '' ? origin !== '' && origin !== own : site !== 'same-origin' && site !== 'none';
    if (crosses) throw new Problem('cross-site', 'This request was sent by another site.');
    await next();
  };
}
