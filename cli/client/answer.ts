import type { IncomingHttpHeaders } from 'node:http';
import { requestIdHeader } from '#contract/problems.ts';

/** @property isRepeat whether an earlier attempt of the request may have arrived */
export type Answer = { status: number; headers: IncomingHttpHeaders; text: string; isRepeat?: boolean };

/** A year, in ms. Without a maximum, a header with enough digits would become Infinity. */
const maxWait = 365 * 24 * 3_600_000;

/** Returns the details that an error carries about its response. @param now in milliseconds */
export function errorDetails({ status, headers }: Pick<Answer, 'status' | 'headers'>, now: number) {
  const header = headers[requestIdHeader.toLowerCase()];
  const wait = headers['retry-after'];
  return {
    status,
    retryAfter: wait === undefined ? undefined : Math.ceil(parseRetryAfter(wait, now) / 1000),
    requestId: typeof header === 'string' ? header : undefined,
  };
}

/** Parses `Retry-After`, which has seconds or a date (RFC 9110 §10.2.3). @returns milliseconds from now; 0 without the header */
export function parseRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  const milliseconds = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(milliseconds) ? 0 : Math.min(maxWait, Math.max(0, milliseconds));
}
