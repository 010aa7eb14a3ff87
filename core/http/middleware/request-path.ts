import { Problem } from '../../domain/problem.ts';
import type { Middleware } from './context.ts';
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

/** Treats a URL that Node can't parse, such as `http://[::1`, like an unknown path. Otherwise, Koa would throw when it reads the path. */
export const requireReadablePath: Middleware = (ctx, next) => {
  try {
    void ctx.path;
  } catch {
    return refuse(ctx);
  }
  return next();
};
