import { Problem } from '../../domain/problem.ts';
import type { HttpDeps, Middleware } from './context.ts';

/**
 * Refuses requests that another site makes a browser send (OWASP Cross-Site Request Forgery Prevention Cheat Sheet). Checks Fetch Metadata
 * if the browser sends it, and otherwise Origin. Accepts requests with neither, because they come from programs other than browsers, which
 * other sites can't control.
 */
export function csrf(deps: HttpDeps): Middleware {
  return async (ctx, next) => {
    const site = ctx.get('Sec-Fetch-Site');
    const origin = ctx.get('Origin');
    const own = `${deps.isSecure(ctx) ? 'https' : 'http'}://${ctx.get('Host')}`;
    const isCrossSite = site === '' ? origin !== '' && !isSameOrigin(origin, own) : site !== 'same-origin' && site !== 'none';
    if (isCrossSite) throw new Problem('cross-site', 'This request came from another site.');
    await next();
  };
}

/** Compares parsed origins, because programs and proxies may write the default port, or a host in upper case. */
function isSameOrigin(a: string, b: string): boolean {
  const parsed = URL.parse(a)?.origin;
  return parsed !== undefined && parsed === URL.parse(b)?.origin;
}
