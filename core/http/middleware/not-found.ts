import { Problem } from '../../domain/problem.ts';
import type { Middleware } from './context.ts';
import { refuse } from './problems.ts';
import { badEncoding, isDecodable } from './request-path.ts';
import { isSignedIn } from './session.ts';

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
