import { z } from 'zod';

/** All problem codes, each with its status and title (RFC 9457). */
export const problemTable = {
  'malformed-request': { status: 400, title: 'Malformed request' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  'campaign-refused': { status: 403, title: 'Campaign access denied' },
  forbidden: { status: 403, title: 'Forbidden' },
  'do-not-call': { status: 403, title: 'On a do-not-call list' },
  'cross-site': { status: 403, title: 'Cross-site request refused' },
  'not-found': { status: 404, title: 'Not found' },
  'call-not-found': { status: 404, title: 'Call not found' },
  'method-not-allowed': { status: 405, title: 'Method not allowed' },
  'request-id-conflict': { status: 409, title: 'Request ID already used' },
  'already-dialed': { status: 409, title: 'Already dialed' },
  conflict: { status: 409, title: 'Conflict' },
  'too-large': { status: 413, title: 'Request body too large' },
  'unsupported-media-type': { status: 415, title: 'Unsupported media type' },
  invalid: { status: 422, title: 'Invalid input' },
  'outside-calling-hours': { status: 422, title: 'Outside calling hours' },
  'too-many-calls': { status: 429, title: 'Too many calls today' },
  'too-many-requests': { status: 429, title: 'Too many requests' },
  internal: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Unavailable' },
} as const;

export type ProblemCode = keyof typeof problemTable;

export const problemMediaType = 'application/problem+json';

/** Identifies a request in the client's log and in the core's. */
export const requestIdHeader = 'X-Request-Id';

const problemTypePrefix = 'urn:callkey:problems#';

export function problemType(code: ProblemCode): string {
  return problemTypePrefix + code;
}

const fieldErrorSchema = z.object({
  /** The position in the body, such as `contact.phone`; empty for the whole body. */
  path: z.string(),
  message: z.string(),
});
export type FieldError = z.infer<typeof fieldErrorSchema>;

/** The body of every error response. */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  detail: z.string(),
  errors: z.array(fieldErrorSchema).optional(),
  /** Only with `internal`: the ID of the error in the operator's log, as in the header `X-Request-Id`. */
  instance: z.string().optional(),
});
export type ProblemBody = z.infer<typeof problemSchema>;

/** Returns the code at the end of a problem type URI; undefined if it isn't one of ours. */
export function problemCode(type: string): ProblemCode | undefined {
  const code = type.startsWith(problemTypePrefix) ? type.slice(problemTypePrefix.length) : '';
  return Object.hasOwn(problemTable, code) ? (code as ProblemCode) : undefined;
}
