import { Problem } from '../../domain/problem.ts';
import type { Context, Middleware } from './context.ts';
import { refuse } from './problems.ts';

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
