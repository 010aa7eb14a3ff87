import { Problem } from '../domain/problem.ts';

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
  return new Problem('malformed-request', 'The address has bad percent-encoding.');
}
