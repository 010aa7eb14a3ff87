import { Problem } from '../../domain/problem.ts';
import type { Context, Middleware } from './context.ts';
import { refuse } from './responses.ts';
import { isSignedIn } from './session.ts';

/** Whether a path or query contains only valid percent-encoding. */
export function isDecodable(path: string): boolean {
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

export function badEncoding(): Problem {
  return new Problem('malformed-request', 'The URL has invalid percent-encoding.');
}

/** Whether Koa can read a request's path: it throws for a URL that can't be parsed, such as `http://[::1`. */
export function hasReadablePath(ctx: Context): boolean {
  try {
    return ctx.path !== undefined;
  } catch {
    return false;
  }
}

/** Treats a URL that can't be parsed like an unknown path. */
export const requireReadablePath: Middleware = (ctx, next) => (hasReadablePath(ctx) ? next() : refuse(ctx));

/**
 * Handles requests that don't match a route. Without a session, the response is the common 401, so that strangers don't learn which paths
 * exist. A signed-in user gets the reason.
 *
 * @param listMethods returns the methods that a path supports
 */
export function notFound(listMethods: (path: string) => readonly string[]): Middleware {
  return async (ctx) => {
    if (!isSignedIn(ctx)) return refuse(ctx);
    if (!isDecodable(ctx.url)) throw badEncoding();
    const methods = listMethods(ctx.path);
    if (methods.length > 0) throw methodNotAllowed(methods);
    throw new Problem('not-found', 'Nothing exists at this path.');
  };
}

export function methodNotAllowed(methods: readonly string[]): Problem {
  const allow = [...new Set(methods)].join(', ');
  return new Problem('method-not-allowed', `Allowed methods: ${allow}.`, { allow });
}
