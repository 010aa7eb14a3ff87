/** What the command ends with. A script decides by these, so they never change their meaning. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  keyRefused: 3,
  campaignRefused: 4,
  conflict: 5,
  notFound: 6,
  unreachable: 7,
} as const;

export type ErrorKind = Exclude<keyof typeof exitCodes, 'done'>;

/** What went wrong and what to do about it, in words for the person at the terminal. */
export class CallkeyError extends Error {
  readonly kind: ErrorKind;
  /** The problem code, where a core gave one. */
  readonly code: string | undefined;

  constructor(kind: ErrorKind, message: string, { code, cause }: { code?: string | undefined; cause?: unknown } = {}) {
    super(message, { cause });
    this.name = 'Failure';
    this.kind = kind;
    this.code = code;
  }
}

/** A signal stopped the work, which has been left in good order. */
export class Interrupted extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals, message: string) {
    super(message);
    this.name = 'Interrupted';
    this.signal = signal;
  }
}

/** The code of a system error, such as ENOENT. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
