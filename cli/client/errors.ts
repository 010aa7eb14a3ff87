/**
 * - `usage`: the call, an identifier or the address is wrong; the same again changes nothing
 * - `keyRefused`: the key is unknown, revoked or expired
 * - `campaignRefused`: the key has no access to the campaign, or there is none
 * - `conflict`: the request id has placed another call, or it is too late to cancel
 * - `notFound`: the campaign has no such call
 * - `unreachable`: no answer; the call may have been placed unless `isUnsent`: place it again under the same request id
 * - `failed`: anything else
 */
export type ErrorKind = 'failed' | 'usage' | 'keyRefused' | 'campaignRefused' | 'conflict' | 'notFound' | 'unreachable';

type FieldError = { path: string; message: string };
type Details = { code?: string | undefined; errors?: readonly FieldError[]; isUnsent?: boolean; cause?: unknown };

/** Its message says what happened and what to do. The command line makes its exit code of the kind. */
export class CallkeyError extends Error {
  readonly kind: ErrorKind;
  /** The problem code, where a core sent one. */
  readonly code: string | undefined;
  /** What is wrong with the call, as the core says: `{ path: 'contact.phone', message: '…' }`. */
  readonly errors: readonly FieldError[];
  /** No attempt got as far as to send the request. */
  readonly isUnsent: boolean;

  constructor(kind: ErrorKind, message: string, { code, errors = [], isUnsent = false, cause }: Details = {}) {
    super(message, { cause });
    this.name = 'CallkeyError';
    this.kind = kind;
    this.code = code;
    this.errors = errors;
    this.isUnsent = isUnsent;
  }
}

/** The code of a system error, such as ENOENT. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
