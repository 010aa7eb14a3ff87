import type { IncomingHttpHeaders } from 'node:http';
import { redactKeyValues } from '#contract/key-value.ts';
import { parseRetryAfter } from '#contract/parse-retry-after.ts';
import { type ProblemBody, problemCode, problemSchema, requestIdHeader } from '#contract/problems.ts';
import { parseJson } from '#contract/text/json.ts';
import { CallkeyError, type ErrorKind, isNotCallable } from './errors.ts';

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

const kinds: Readonly<Record<number, ErrorKind>> = {
  400: 'usage',
  401: 'keyRefused',
  403: 'campaignRefused',
  404: 'notFound',
  409: 'conflict',
  413: 'usage',
  415: 'usage',
  422: 'usage',
};

const campaignAdvice =
  "Check the campaign ID. A key has access to the campaigns in its creator's account, or in all accounts under its creator's partner.";

const keyAdvice =
  "Either the key is unknown, revoked, expired or not accepted from this computer's IP address, or the server address is wrong. For security, the server doesn't say which. If the key works elsewhere, check in the console whether it's limited to certain addresses. Otherwise, create another key there.";

/** Builds the error for an unexpected response. @param keySource see ClientOptions */
export function problemError({ status, headers, text, isRepeat = false }: Answer, keySource?: string): CallkeyError {
  const details = { ...errorDetails({ status, headers }, Date.now()), isRepeat };
  if (status >= 300 && status < 400) {
    const why = `The server responded with a redirect (${status}). callkey doesn't follow redirects, because they could send the key to another server.`;
    return new CallkeyError('failed', `${why} ${redirectAdvice(headers.location)}`, details);
  }
  const problem = readProblem(text);
  const code = problem && problemCode(problem.type);
  const kind = isNotCallable(code) ? 'notCallable' : (kinds[status] ?? 'failed');
  const sentences = [
    // The core intentionally says only "unauthorized", so the advice says more.
    code === 'unauthorized' ? undefined : (problem?.detail ?? describeForeignResponse(status)),
    problem?.instance && `The request's ID is ${problem.instance}.`,
    ...(problem && status === 401 ? ['The server rejected the API key.', keySource, keyAdvice] : []),
    problem && status === 403 && kind !== 'notCallable' ? campaignAdvice : undefined,
  ];
  const errors = problem?.errors ?? [];
  // The core's detail already says the first error.
  const others = errors.filter(({ message }, index) => index > 0 || !problem?.detail?.endsWith(message));
  const fields = others.map(({ path, message }) => `\n  ${path === '' ? 'body' : path}: ${message}`).join('');
  const message = sentences.filter((sentence) => sentence !== undefined).join(' ') + fields;
  return new CallkeyError(kind, message, { ...details, code, errors });
}

/** Reads a problem. Removes keys, because a debugging proxy may repeat the request's headers. @returns undefined for any other text */
export function readProblem(text: string): ProblemBody | undefined {
  return problemSchema.safeParse(parseJson(redactKeyValues(text))).data;
}

/** Describes a response from another server, or from a proxy on the way. */
function describeForeignResponse(status: number): string {
  return `The server returned ${status}, but the response isn't from a Callkey core. Check the server address and any proxy in between.`;
}

/** Shows only the host of a redirect's target, because an attacker can put anything into the rest. */
function redirectAdvice(location: string | undefined): string {
  const url = URL.parse(location ?? '');
  return url === null ? 'Use the address that it redirects to.' : `If you trust that server, use its address: ${url.origin}`;
}
