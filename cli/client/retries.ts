import { setTimeout as wait } from 'node:timers/promises';
import type { Answer } from './core-client.ts';
import { CallkeyError, errorCode } from './errors.ts';

/** How long a request is sent again before giving up, and who is told. */
export type RetryPolicy = {
  attempts: number;
  /** Ends the waiting; a request under way is left to end by itself. */
  signal?: AbortSignal;
  onRetry?: (reason: string) => void;
};

/** Someone waits for a single call; a file may sit out a restart of the core. */
export const oneCallPolicy = { attempts: 6 };
export const filePolicy = { attempts: 12 };

const firstPause = 250;
const longestPause = 8_000;
/** A server that wants a longer rest than this is left alone. */
const longestRest = 60_000;

/** Statuses that say nothing of the request itself, only that now is no good time. */
const passing = [429, 502, 503, 504];

/**
 * Sends a request until it is answered for good. Only what may be repeated must be sent so: a call under its request id, a cancel.
 *
 * @throws Failure `unreachable`
 */
export async function withRetries(send: () => Promise<Answer>, server: string, patience: RetryPolicy): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await send().catch((error: unknown) => reasonOf(error));
    if (typeof outcome !== 'string' && !passing.includes(outcome.status)) return outcome;

    const reason = typeof outcome === 'string' ? outcome : `it answers ${outcome.status}`;
    const rest = typeof outcome === 'string' ? 0 : retryAfter(outcome.headers['retry-after'], Date.now());
    if (rest > longestRest) throw unreachable(`${server} asks to be left alone for ${Math.ceil(rest / 1000)} s`);
    if (attempt < patience.attempts && !patience.signal?.aborted) {
      patience.onRetry?.(reason);
      await pause(Math.max(rest, backoff(attempt)), patience.signal);
    }
    if (attempt >= patience.attempts || patience.signal?.aborted) {
      throw unreachable(`${server} cannot be reached (${attempt} attempts): ${reason}`);
    }
  }
}

function unreachable(what: string): CallkeyError {
  return new CallkeyError('unreachable', `${what}.`);
}

/** Doubling, half of it random, so that many clients do not come back all at once. */
function backoff(attempt: number): number {
  const longest = Math.min(longestPause, firstPause * 2 ** (attempt - 1));
  return longest * (0.5 + Math.random() / 2);
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  await wait(milliseconds, undefined, signal && { signal }).catch(() => undefined);
}

/** RFC 9110 §10.2.3: seconds, or a date. @returns milliseconds from now, 0 for none */
export function retryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  const milliseconds = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(milliseconds) ? 0 : Math.max(0, milliseconds);
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection broke off',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the host name cannot be looked up',
  UND_ERR_SOCKET: 'the connection broke off',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'no complete answer in time',
};

/** @throws what is no failure of the network */
function reasonOf(error: unknown): string {
  const code = errorCode(error);
  if (code === undefined || code.startsWith('UND_ERR_INVALID') || code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') throw error;
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)) {
    return `its certificate is not trusted (${code}); NODE_EXTRA_CA_CERTS=FILE adds a certificate authority`;
  }
  return reasons[code] ?? code;
}
