import { type FieldError, type ProblemCode, problemTable } from '#contract/problems.ts';

/** The one thing that is said to whoever is not let in, whatever the reason. */
export const unauthorizedDetail = 'This request needs valid credentials.';

/** A refusal with a code from the closed list. Its detail is for the caller's eyes; the cause is for the log. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly FieldError[] | undefined;
  /** Seconds after which to try again. */
  readonly retryAfter: number | undefined;
  /** The methods that a path knows, with `method-not-allowed`. */
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
