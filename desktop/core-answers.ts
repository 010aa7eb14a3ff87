import type { z } from 'zod';
import { generation, generationHeader } from '#contract/generation.ts';
import { problemCode, problemMediaType, problemSchema } from '#contract/problems.ts';
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
  return parsed.success ? { ok: true, value: parsed.data } : failed({ kind: 'incompatible', core: 'unknown' });
}

export function failed(failure: Failure): Result<never> {
  return { ok: false, failure };
}

/** Returns the failure in a response; null if the request succeeded. */
export function findFailure({ status, header, text }: Answer): Result<never> | null {
  if (status >= 200 && status < 300) return generationMismatch(header(generationHeader.toLowerCase()));
  const problem = header('content-type')?.startsWith(problemMediaType) ? problemSchema.safeParse(parseJson(text)) : null;
  const code = problem?.success ? problemCode(problem.data.type) : undefined;
  if (!problem?.success || !code) {
    // The response isn't in the core's format, so a proxy in front of it has responded.
    if (status >= 500 || status === 429)
      return failed({
        kind: 'unreachable',
        detail: `The proxy in front of the server returned ${status}. Check that the server is running.`,
      });
    return failed({ kind: 'incompatible', core: 'unknown' });
  }
  if (code === 'unauthorized') return failed({ kind: 'session-ended' });
  const { detail, errors = [], instance } = problem.data;
  const retryAfter = Number(header('retry-after'));
  return failed({
    kind: 'refused',
    code,
    detail: instance === undefined ? detail : `${detail} (${instance})`,
    errors,
    retryAfterSeconds: Number.isInteger(retryAfter) && retryAfter > 0 ? retryAfter : null,
  });
}

function generationMismatch(header: string | undefined): Result<never> | null {
  if (header === String(generation)) return null;
  const number = header === undefined ? 0 : Number(header);
  if (Number.isNaN(number)) return failed({ kind: 'incompatible', core: 'unknown' });
  return failed({ kind: 'incompatible', core: number < generation ? 'older' : 'newer' });
}
