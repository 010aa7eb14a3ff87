import type { CallkeyError, ErrorKind } from './client/errors.ts';
import type { Failure } from './terminal/output.ts';

/** Scripts depend on these, so a code never changes its meaning. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  keyRefused: 3,
  campaignRefused: 4,
  conflict: 5,
  notFound: 6,
  unreachable: 7,
  notCallable: 8,
} as const satisfies Record<ErrorKind | 'done', number>;

/** With --json, the code of an error that doesn't have its own. */
const errorCodes = {
  failed: 'failed',
  usage: 'usage',
  keyRefused: 'unauthorized',
  campaignRefused: 'campaign-refused',
  conflict: 'conflict',
  notFound: 'not-found',
  unreachable: 'unreachable',
  notCallable: 'not-callable',
} as const satisfies Record<ErrorKind, string>;

export function toFailure({ kind, code, message }: CallkeyError): Failure {
  return { code: code ?? errorCodes[kind], message, exitCode: exitCodes[kind] };
}
