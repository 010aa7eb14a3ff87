export type ErrorKind = 'failed' | 'usage' | 'keyRefused' | 'campaignRefused' | 'conflict' | 'notFound' | 'unreachable';

/** Its message says what happened and what to do. The command line makes its exit code of the kind. */
export class CallkeyError extends Error {
  readonly kind: ErrorKind;
  /** The problem code, where a core sent one. */
  readonly code: string | undefined;

  constructor(kind: ErrorKind, message: string, { code, cause }: { code?: string | undefined; cause?: unknown } = {}) {
    super(message, { cause });
    this.name = 'CallkeyError';
    this.kind = kind;
    this.code = code;
  }
}

/** The code of a system error, such as ENOENT. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
