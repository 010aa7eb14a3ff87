import { problemCode, problemSchema } from '#contract/problems.ts';
import { parseJson } from '../durable-file.ts';
import type { Answer } from './core-client.ts';
import { CallkeyError, type ErrorKind } from './errors.ts';

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

const advice: Readonly<Record<number, string>> = {
  401: 'The API key is refused: it is unknown here, revoked or expired, or the server address is wrong. Create a key in the console and store it: callkey key set',
  403: "Check the campaign's id. A key reaches the campaigns of its creator's account, or of all accounts beneath its creator's partner.",
};

/** What an answer other than the wished one comes to. */
export function problemError({ status, headers, text }: Answer): CallkeyError {
  if (status >= 300 && status < 400) {
    return new CallkeyError(
      'failed',
      `The server answers with a redirect (${status}), which is not followed, so that the key goes nowhere else. ${whereTo(headers.location)}`,
    );
  }
  const problem = problemSchema.safeParse(parseJson(text)).data;
  const code = problem && problemCode(problem.type);
  const said = status === 401 ? [] : [problem?.detail ?? `The server answers ${status}.`];
  const fields = (problem?.errors ?? []).map(({ path, message }) => `\n  ${path === '' ? 'body' : path}: ${message}`).join('');
  const log = problem?.requestId === undefined ? [] : [`The operator finds it in the log as ${problem.requestId}.`];
  const message = [...said, ...log, ...(advice[status] === undefined ? [] : [advice[status]])].join(' ') + fields;
  return new CallkeyError(kinds[status] ?? 'failed', message, { code });
}

/** The host alone: the rest of a redirect's target may be made to carry anything. */
function whereTo(location: string | undefined): string {
  const url = location === undefined ? null : URL.parse(location);
  return url === null ? 'Give the address that it points to.' : `If you trust it, give its address: --server ${url.origin}`;
}
