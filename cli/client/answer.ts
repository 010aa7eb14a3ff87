import type { IncomingHttpHeaders } from 'node:http';
import { requestIdHeader } from '#contract/problems.ts';
import { parseRetryAfter } from '#contract/retry-after.ts';

/** @property isRepeat whether an earlier attempt of the request may have arrived */
export type Answer = { status: number; headers: IncomingHttpHeaders; text: string; isRepeat?: boolean };

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
