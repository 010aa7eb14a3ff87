/**
 * - `usage`: the call, an identifier or the address is invalid, and repeating it won't help
 * - `keyRefused`: the key is unknown, revoked or expired, or not accepted from this address
 * - `campaignRefused`: the key doesn't have access to the campaign, or the campaign doesn't exist
 * - `notCallable`: the person must not be called at all, or not in the call's time window; `code` is one of {@link notCallableCodes}
 * - `conflict`: the request ID was already used for a different call, or it's too late to cancel
 * - `notFound`: the campaign doesn't have this call
 * - `unreachable`: no response; unless `isUnsent`, the call may have been placed: place it again with the same request ID
 * - `failed`: anything else
 */
export type ErrorKind = 'failed' | 'usage' | 'keyRefused' | 'campaignRefused' | 'notCallable' | 'conflict' | 'notFound' | 'unreachable';

/** Why a person must not be called: the number is on the do-not-call list, or calling hours don't open before the call's `notAfter`. */
export const notCallableCodes = { doNotCall: 'do-not-call', outsideCallingHours: 'outside-calling-hours' } as const;

export function isNotCallable(code: string | undefined): boolean {
  return Object.values(notCallableCodes).some((known) => known === code);
}

type FieldError = { path: string; message: string };
type Details = {
  code?: string | undefined;
  status?: number | undefined;
  retryAfter?: number | undefined;
  requestId?: string | undefined;
  errors?: readonly FieldError[];
  isUnsent?: boolean;
  isRepeat?: boolean;
  cause?: unknown;
};

/** The message says what happened and what to do. The command line derives its exit code from the kind. */
export class CallkeyError extends Error {
  readonly kind: ErrorKind;
  /** The problem code, if a core sent one. */
  readonly code: string | undefined;
  /** The status of the last response, if there was one. */
  readonly status: number | undefined;
  /** How many seconds the server asked to wait before the next request. */
  readonly retryAfter: number | undefined;
  /** The `X-Request-Id` of the last response: the operator can use it to find the request in the log. It isn't the call's request ID. */
  readonly requestId: string | undefined;
  /** The call's invalid fields: `{ path: 'contact.phone', message: '…' }`. */
  readonly errors: readonly FieldError[];
  /** Whether the request was never sent, in any attempt. */
  readonly isUnsent: boolean;
  /** Whether an earlier attempt of the request may have arrived. */
  readonly isRepeat: boolean;

  constructor(kind: ErrorKind, message: string, details: Details = {}) {
    const { code, status, retryAfter, requestId, errors = [], isUnsent = false, isRepeat = false, cause } = details;
    super(message, { cause });
    this.name = 'CallkeyError';
    this.kind = kind;
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
    this.requestId = requestId;
    this.errors = errors;
    this.isUnsent = isUnsent;
    this.isRepeat = isRepeat;
  }
}

/** Returns the code of a system error, such as ENOENT. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** The call, an identifier, an option or the address is invalid. */
export function usageError(message: string, details?: Details): CallkeyError {
  return new CallkeyError('usage', message, details);
}
