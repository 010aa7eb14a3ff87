// Hand-written because undici's RetryAgent caps Retry-After at its own longest delay, and p-retry doesn't read Retry-After at all.
import { parseRetryAfter } from '#contract/parse-retry-after.ts';
import { problemCode } from '#contract/problems.ts';
import { type Answer, errorDetails, readProblem } from './answer.ts';
import { type ConnectionFailure, toConnectionFailure } from './connection-errors.ts';
import { CallkeyError } from './errors.ts';
import type { Timing } from './timing.ts';
import type { RetryPolicy } from './types.ts';

/** A user waits for a single call, so its delays add up to at most 8 s. A file must survive a core's restart, so it gets up to 56 s. */
export const oneCallPolicy = { attempts: 6 };
export const filePolicy = { attempts: 12 };

const firstDelay = 250;
const maxDelay = 8_000;
/** In ms. If the server asks for a longer wait, the command stops, because waiting that long would look as if it hung. */
const maxRetryAfter = 60_000;

/** Returns the core's explanation if the key has placed all its calls for today; null otherwise. */
function describeLimit({ text }: Answer): string | null {
  const problem = readProblem(text);
  return problem && problemCode(problem.type) === 'too-many-calls' ? problem.detail : null;
}

/** These statuses say nothing about the request, only that the core can't respond now. */
const temporaryStatuses = [429, 502, 503, 504];

/**
 * Sends a request until a final response arrives. Use it only for requests that are safe to repeat: placing a call with its request ID, or
 * cancelling.
 *
 * @throws CallkeyError `unreachable`, `failed`; the reason of the signal
 */
export async function withRetries(
  send: () => Promise<Answer>,
  server: string,
  { attempts = oneCallPolicy.attempts, until, onRetry }: RetryPolicy,
  signal: AbortSignal | undefined,
  timing: Timing,
): Promise<Answer> {
  const waitsUntil = until && signal ? AbortSignal.any([until, signal]) : (until ?? signal);
  let mayHaveArrived = false;
  for (let attempt = 1; ; attempt++) {
    const outcome: Answer | ConnectionFailure = await send().catch((error: unknown) => {
      signal?.throwIfAborted();
      return toConnectionFailure(error, server);
    });
    const isAnswer = 'status' in outcome;
    const isRepeat = mayHaveArrived;
    if (isAnswer && !temporaryStatuses.includes(outcome.status)) return isRepeat ? { ...outcome, isRepeat } : outcome;

    mayHaveArrived ||= isAnswer || outcome.mayHaveArrived;
    const reason = isAnswer ? `the server returned ${outcome.status}` : outcome.reason;
    const details = isAnswer ? errorDetails(outcome, timing.now()) : {};
    const requested = isAnswer ? parseRetryAfter(outcome.headers['retry-after'], timing.now()) : 0;
    if (requested > maxRetryAfter) {
      const wait = formatSpan(Math.ceil(requested / 1000));
      const limit = isAnswer ? describeLimit(outcome) : null;
      if (limit !== null)
        throw new CallkeyError('unreachable', `${limit} That's in ${wait}.`, { ...details, isRepeat, code: 'too-many-calls' });
      throw new CallkeyError('unreachable', `${server} asked callkey to wait ${wait} before the next request.`, details);
    }
    if (attempt < attempts && !until?.aborted) {
      onRetry?.(reason);
      await timing.wait(Math.max(requested, backoff(attempt, timing.random())), waitsUntil);
    }
    if (attempt >= attempts || until?.aborted) {
      const attemptsMade = attempt === 1 ? '1 attempt' : `${attempt} attempts`;
      const message = `Couldn't reach ${server} (${attemptsMade}): ${reason}.`;
      throw new CallkeyError('unreachable', message, { ...details, isUnsent: !mayHaveArrived });
    }
  }
}

/** Doubles up to a limit. Half of the delay is random, so that many clients don't retry at the same time. */
export function backoff(attempt: number, random: number): number {
  const longest = Math.min(maxDelay, firstDelay * 2 ** (attempt - 1));
  return longest * (0.5 + random / 2);
}

/** Writes a time span, rounded up to minutes if it's a minute or more. */
export function formatSpan(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = `${Math.floor(minutes / 60)} h`;
  return minutes % 60 === 0 ? hours : `${hours} ${minutes % 60} min`;
}
