import { type FieldError, type ProblemCode, problemTable } from '#contract/problems.ts';
import type { Operator, Viewer } from './model.ts';

/** The only detail of a 401, so that a caller doesn't learn the reason. */
export const unauthorizedDetail = 'This request needs valid credentials.';

/** A key's remaining calls for the day, which ends in `resetsIn` seconds. */
export type Quota = { callsPerDay: number; left: number; resetsIn: number };

/** The caller sees the detail, but only the log contains the cause. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly FieldError[] | undefined;
  /** In seconds. */
  readonly retryAfter: number | undefined;
  /** The methods that the path supports, for `method-not-allowed`. */
  readonly allow: string | undefined;
  /** The limit that the key has reached, for `too-many-calls`. */
  readonly quota: Quota | undefined;

  constructor(
    code: ProblemCode,
    detail: string,
    more: { cause?: unknown; errors?: readonly FieldError[]; retryAfter?: number; allow?: string; quota?: Quota } = {},
  ) {
    super(detail, { cause: more.cause });
    this.name = 'Problem';
    this.code = code;
    this.errors = more.errors;
    this.retryAfter = more.retryAfter;
    this.allow = more.allow;
    this.quota = more.quota;
  }

  get status(): number {
    return problemTable[this.code].status;
  }
}

/** Thrown if keys were revoked, but not all of their queued calls are cancelled yet. Housekeeping cancels the others. */
export class CallsNotCancelled extends Problem {}

/**
 * Thrown if a statement that places or cancels calls was sent, but it isn't known whether it was executed. The caller gets no response,
 * because for requests with a key, a 503 means that nothing was changed.
 */
export class ResultUnknown extends Error {
  override name = 'ResultUnknown';

  constructor(cause: unknown) {
    super("A statement was sent, but its result isn't known.", { cause });
  }
}

export function unauthorized(): Problem {
  return new Problem('unauthorized', unauthorizedDetail);
}

/** Returns the same problem for what the user can't see and what doesn't exist, so that no one learns which IDs exist. */
export function notFound(what: string, viewer: Pick<Viewer | Operator, 'userType'> | null = null): Problem {
  return new Problem('not-found', describeMissing(what, viewer));
}

/** The operator has access to everything. */
export function describeMissing(what: string, viewer: Pick<Viewer | Operator, 'userType'> | null): string {
  return `This ${what} doesn't exist${viewer?.userType === 'operator' ? '' : ", or you don't have access to it"}.`;
}

/** A body can have thousands of errors, so the response lists only the first ones. */
const maxReportedErrors = 50;

/** @param before precedes the detail */
export function invalidBody(errors: readonly FieldError[], before = ''): Problem {
  const [first] = errors;
  const detail = `${before}Invalid body${first?.path ? ` at ${first.path}` : ''}: ${first?.message ?? ''}`;
  return new Problem('invalid', detail, { errors: errors.slice(0, maxReportedErrors) });
}

/** The console shows the detail to users, who know the name of what they entered, but not what a query is. */
export function invalidQuery({ path, message }: FieldError): Problem {
  return new Problem('malformed-request', `Invalid ${path === '' ? 'query' : path}: ${message}`);
}

export function invalidField(path: string, message: string): Problem {
  return new Problem('invalid', message, { errors: [{ path, message }] });
}

/** Returns the code that Node and the database drivers add to their errors, such as `ENOENT` or `23505`; empty if there's none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
