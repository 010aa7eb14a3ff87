import type { IncomingHttpHeaders } from 'node:http';
import { Agent } from 'undici';
import type { z } from 'zod';
import {
  apiKeyHeader,
  type CancelledCallView,
  cancelledCallSchema,
  keyExpiresHeader,
  type PlaceCall,
  type PlacedCallView,
  placedCallSchema,
  replayedHeader,
} from '#contract/calls.ts';
import { parseJson } from '#contract/json.ts';
import { paths, pathTo } from '#contract/paths.ts';
import type { Answer } from './answer.ts';
import { CallkeyError } from './errors.ts';
import { problemError } from './problem-error.ts';
import { type RetryPolicy, withRetries } from './retries.ts';

export type PlacedCall = PlacedCallView & { replayed: boolean };
/** The client takes no call without a request id: without one, a retry could place a second call. */
export type IdentifiedCall = PlaceCall & { requestId: string };
export type CallReference = { contactId: string } | { requestId: string };

/** The three key-authenticated endpoints of one core. Each method throws CallkeyError. */
export type CoreClient = {
  place(campaignId: string, call: IdentifiedCall): Promise<PlacedCall>;
  cancel(campaignId: string, call: CallReference): Promise<CancelledCallView>;
  close(): Promise<void>;
};

export type ClientOptions = {
  server: string;
  keyValue: string;
  retry: RetryPolicy;
  connections: number;
  /** Gets each request and answer, without the key. */
  trace: (text: string) => void;
  /** Gets the end of a key that ends within 30 days (RFC 3339), with each answer. */
  onKeyEndsSoon?: (expiresAt: string) => void;
};

const timeouts = { connect: 5_000, answer: 10_000 };
const largestAnswer = 1024 * 1024;

/** Follows no redirect, so that the key reaches no server but the one it is for. */
export function createCoreClient({ server, keyValue, retry, connections, trace, onKeyEndsSoon }: ClientOptions): CoreClient {
  const { origin, pathname } = new URL(server);
  const agent = new Agent({
    connections,
    pipelining: 1,
    connect: { timeout: timeouts.connect },
    headersTimeout: timeouts.answer,
    bodyTimeout: timeouts.answer,
    maxResponseSize: largestAnswer,
  });

  async function sendOnce(method: 'POST' | 'DELETE', path: string, body: string | null): Promise<Answer> {
    const headers = { accept: 'application/json', ...(body === null ? {} : { 'content-type': 'application/json' }) };
    trace(`> ${method} ${server}${path}\n> ${apiKeyHeader}: [redacted]${body === null ? '' : `\n> ${body}`}`);
    const response = await agent.request({
      origin,
      // Not through a URL object: it would resolve a request id of two dots to another path.
      path: pathname.replace(/\/$/, '') + path,
      method,
      headers: { ...headers, [apiKeyHeader]: keyValue },
      body,
    });
    const text = await response.body.text();
    trace(`< ${response.statusCode}${retryAfterLine(response.headers)}\n< ${text}`);
    const expiresAt = response.headers[keyExpiresHeader.toLowerCase()];
    if (typeof expiresAt === 'string') onKeyEndsSoon?.(expiresAt);
    return { status: response.statusCode, headers: response.headers, text };
  }

  const onRetry = (reason: string) => {
    trace(`! ${reason}; trying again`);
    retry.onRetry?.(reason);
  };
  const send = (method: 'POST' | 'DELETE', path: string, body: string | null = null) =>
    withRetries(() => sendOnce(method, path, body), server, { ...retry, onRetry });

  return {
    async place(campaignId, call) {
      const answer = await send('POST', pathTo(paths.placeCall, { campaignId }), JSON.stringify(call));
      const placed = readAnswer(answer, 202, placedCallSchema);
      if (placed.requestId !== call.requestId) throw unexpectedAnswer(answer);
      return { ...placed, replayed: answer.headers[replayedHeader.toLowerCase()] === 'true' };
    },
    async cancel(campaignId, call) {
      const path =
        'contactId' in call
          ? pathTo(paths.cancelCallByContact, { campaignId, contactId: call.contactId })
          : pathTo(paths.cancelCallByRequest, { campaignId, requestId: call.requestId });
      const answer = await send('DELETE', path);
      const cancelled = readAnswer(answer, 200, cancelledCallSchema);
      const isAnother = 'contactId' in call ? cancelled.contactId !== call.contactId : cancelled.requestId !== call.requestId;
      if (isAnother) throw unexpectedAnswer(answer);
      return cancelled;
    },
    close: () => agent.destroy(),
  };
}

function readAnswer<Schema extends z.ZodType>(answer: Answer, status: number, schema: Schema): z.output<Schema> {
  if (answer.status !== status) throw problemError(answer);
  const parsed = schema.safeParse(parseJson(answer.text));
  if (!parsed.success) throw unexpectedAnswer(answer);
  return parsed.data;
}

function unexpectedAnswer({ status }: Answer): CallkeyError {
  return new CallkeyError('failed', `The answer (${status}) did not come from a Callkey core. Check the server address.`);
}

function retryAfterLine(headers: IncomingHttpHeaders): string {
  return headers['retry-after'] === undefined ? '' : `\n< Retry-After: ${headers['retry-after']}`;
}
