import { Problem } from '../../domain/problem.ts';
import type { Middleware } from './context.ts';
import { refuse } from './problems.ts';

/** Whether every percent-encoding in a path or query is one. */
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

/** Answers an address that Node cannot read, such as `http://[::1`, like every unknown path: Koa throws when it is asked for the path. */
export const requireReadablePath: Middleware = (ctx, next) => {
  try {
    void ctx.path;
  } catch {
    return refuse(ctx);
  }
  return next();
};
