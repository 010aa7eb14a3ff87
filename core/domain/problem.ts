import { type FieldError, type ProblemCode, problemTable } from '#contract/problems.ts';

/** The only detail of a 401: a caller must not learn the reason. */
export const unauthorizedDetail = 'This request needs valid credentials.';

/** A refusal with a code from the closed list. The caller sees the detail; only the log has the cause. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly FieldError[] | undefined;
  /** In seconds. */
  readonly retryAfter: number | undefined;
  /** The methods of the path, for `method-not-allowed`. */
  readonly allow: string | undefined;

  constructor(
    code: ProblemCode,
    detail: string,
    more: { cause?: unknown; errors?: readonly FieldError[]; retryAfter?: number; allow?: string } = {},
  ) {
    super(detail, { cause: more.cause });
    this.name = 'Problem';
    this.code = code;
    this.errors = more.errors;
    this.retryAfter = more.retryAfter;
    this.allow = more.allow;
  }

  get status(): number {
    return problemTable[this.code].status;
  }
}

/**
 * A statement that places or cancels calls was sent, and nothing tells whether it was carried out. A 503 would say that it was not, so the caller
 * gets no answer.
 */
export class ResultUnknown extends Error {
  override name = 'ResultUnknown';

  constructor(cause: unknown) {
    super("A statement was sent, but its result isn't known.", { cause });
  }
}

/** One field of an input is wrong. */
export function invalidField(path: string, message: string): Problem {
  return new Problem('invalid', message, { errors: [{ path, message }] });
}
