import type { z } from 'zod';
import { generation, generationHeader } from '#contract/generation.ts';
import { problemCode, problemMediaType, problemSchema } from '#contract/problems.ts';
import { parseRetryAfter } from '#contract/retry-after.ts';
import { parseJson } from '#contract/text/json.ts';
import type { Failure, Result } from './ipc.ts';

/** A response from the core, or from another server that responded in its place. */
export type Answer = {
  status: number;
  /** @param name in lowercase; undefined if the response doesn't have this header */
  header(name: string): string | undefined;
  text: string;
};

/** Returns how many milliseconds this computer's clock is ahead of the server's, from the `Date` header of a response. */
export function computeClockLead(date: string | undefined): number | null {
  const lead = Date.now() - Date.parse(date ?? '');
  return Number.isNaN(lead) ? null : lead;
}

/** Reads the value from a response, or the reason why the request failed. */
export function readAnswer<Value>(answer: Answer, schema: z.ZodType<Value>): Result<Value> {
  const failure = findFailure(answer);
  if (failure) return failure;
  const parsed = schema.safeParse(parseJson(answer.text));
  return parsed.success ? { ok: true, value: parsed.data } : failed({ kind: 'unreachable', detail: unreadable });
}

export function failed(failure: Failure): Result<never> {
  return { ok: false, failure };
}

const unreadable = 'Its response can’t be read. Check any proxy in front of the server, and ask its operator.';

/** Returns the failure in a response; null if the request succeeded. A response that has no sign of a core isn't from one. */
export function findFailure(answer: Answer): Result<never> | null {
  const { status, header, text } = answer;
  if (status >= 200 && status < 300) return generationMismatch(answer);
  const problem = header('content-type')?.startsWith(problemMediaType) ? problemSchema.safeParse(parseJson(text)) : null;
  const code = problem?.success ? problemCode(problem.data.type) : undefined;
  if (!problem?.success || !code) return foreign(answer);
  if (code === 'unauthorized') return failed({ kind: 'session-ended' });
  const { detail, errors = [], instance } = problem.data;
  return failed({
    kind: 'refused',
    code,
    detail: instance === undefined ? detail : `${detail} (${instance})`,
    errors,
    retryAfterSeconds: Math.ceil(parseRetryAfter(header('retry-after'), Date.now()) / 1_000) || null,
  });
}

function generationMismatch(answer: Answer): Result<never> | null {
  const header = answer.header(generationHeader.toLowerCase()) ?? '';
  if (header === String(generation)) return null;
  return /^\d{1,9}$/.test(header)
    ? failed({ kind: 'incompatible', core: Number(header) < generation ? 'older' : 'newer' })
    : foreign(answer);
}

function foreign(answer: Answer): Result<never> {
  const isOther = answer.status < 500 && answer.status !== 429;
  return failed({ kind: 'unreachable', detail: describeForeignResponse(answer), ...(isOther && { isOther }) });
}

/**
 * Says what responded in place of a core, and what to do. Quotes only the origin of a redirect's target, because an attacker can put
 * anything into the rest.
 */
function describeForeignResponse({ status, header, text }: Answer): string {
  if (status >= 300 && status < 400) return describeRedirect(header('location'));
  if (/plain HTTP request was sent to HTTPS port|HTTP request to an HTTPS server/i.test(text))
    return 'This port requires HTTPS. Use an address that starts with https://.';
  if (status >= 500 || status === 429) return `The proxy in front of the server returned ${status}. Check that the server is running.`;
  if (status === 401 || status === 407 || header('www-authenticate') !== undefined)
    return `A proxy or another kind of server responded (${status}) and requires its own sign-in. Check the address, or ask your administrator for one without this sign-in.`;
  const isPage = /^text\/html|^application\/xhtml/i.test(header('content-type') ?? '') || /^\s*<(?:!doctype|html)/i.test(text);
  if (isPage && /type=["']?password/i.test(text))
    return `A sign-in page responded instead of a Callkey server. It may belong to your network, a proxy or another device. Open the address in a browser: if you recognize the page, sign in there, then try again. Otherwise, check the address.`;
  if (status === 404)
    return 'There’s no Callkey server at this address (404). Check the address. If the server is under a path, such as https://example.com/callkey, include it.';
  if (isPage && status < 300)
    return 'A web page responded instead of a Callkey server. If it’s being maintained, wait. If your network has a sign-in page, open that first. Otherwise, check the address and the port.';
  return `This isn’t a Callkey server, but something else that returned ${status}. Check the address, the port and any proxy in between.`;
}

function describeRedirect(location: string | undefined): string {
  const origin = location === undefined ? undefined : URL.parse(location)?.origin;
  const target = origin === undefined || origin === 'null' ? 'another page' : origin;
  return `The server redirects to ${target}. If that’s a sign-in page of your network or company, sign in there in a browser, then try again. Otherwise, use the address that it redirects to.`;
}

/**
 * Explains why a server didn't say how to sign in, although it returns errors as a core does. Every core of this generation does say it, to
 * anyone.
 *
 * @param address where it was asked
 */
export function explainIdentity(failure: Failure, address: string): Failure {
  const { origin, pathname } = new URL(address);
  if (failure.kind === 'session-ended')
    return pathname === '/'
      ? { kind: 'incompatible', core: 'older' }
      : { kind: 'unreachable', isOther: true, detail: `A Callkey server responded, but not under this path. Try ${origin}` };
  if (failure.kind === 'refused' && ['not-found', 'method-not-allowed', 'malformed-request'].includes(failure.code))
    return {
      kind: 'unreachable',
      isOther: true,
      detail:
        'This is the management address of a Callkey server, where no one can sign in. Enter the address of the server itself, which has another port.',
    };
  return failure;
}
