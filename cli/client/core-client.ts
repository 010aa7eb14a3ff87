import type { IncomingHttpHeaders } from 'node:http';
import { Agent } from 'undici';
import type { z } from 'zod';
import {
  apiKeyHeader,
  type CancelledCallView,
  cancelledCallSchema,
  type PlaceCall,
  type PlacedCallView,
  placedCallSchema,
  replayedHeader,
} from '#contract/calls.ts';
import { paths, pathTo } from '#contract/paths.ts';
import { parseJson } from '../durable-file.ts';
import type { Output } from '../output.ts';
import { CallkeyError } from './errors.ts';
import { problemError } from './problem-error.ts';
import { type RetryPolicy, withRetries } from './retries.ts';

export type PlacedCall = PlacedCallView & { replayed: boolean };
/** A call that has its request id already: no other may be sent, since it could not be sent again. */
export type NamedCall = PlaceCall & { requestId: string };
export type CallReference = { contactId: string } | { requestId: string };

/** The three key-authenticated endpoints of one core. */
export type CoreClient = {
  place(campaignId: string, call: NamedCall): Promise<PlacedCall>;
  cancel(campaignId: string, call: CallReference): Promise<CancelledCallView>;
  close(): Promise<void>;
};

export type Answer = { status: number; headers: IncomingHttpHeaders; text: string };

export type ClientOptions = {
  server: string;
  keyValue: string;
  patience: RetryPolicy;
  connections: number;
  output: Output;
};

const timeouts = { connect: 5_000, answer: 10_000 };
const largestAnswer = 1024 * 1024;

/** Redirects are answers like any other here: nothing ever carries the key to where one points. */
export function createCoreClient({ server, keyValue, patience, connections, output }: ClientOptions): CoreClient {
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
    output.trace(`> ${method} ${server}${path}\n> ${apiKeyHeader}: [blotted out]${body === null ? '' : `\n> ${body}`}`);
    const response = await agent.request({
      origin,
      // As it is: a parsed URL would resolve a request id of two dots to another path.
      path: pathname.replace(/\/$/, '') + path,
      method,
      headers: { ...headers, [apiKeyHeader]: keyValue },
      body,
    });
    const text = await response.body.text();
    output.trace(`< ${response.statusCode}${retryAfterText(response.headers)}\n< ${text}`);
    return { status: response.statusCode, headers: response.headers, text };
  }

  const onRetry = (reason: string) => {
    output.trace(`! ${reason}; it is sent again`);
    patience.onRetry?.(reason);
  };
  const send = (method: 'POST' | 'DELETE', path: string, body: string | null = null) =>
    withRetries(() => sendOnce(method, path, body), server, { ...patience, onRetry });

  return {
    async place(campaignId, call) {
      const answer = await send('POST', pathTo(paths.placeCall, { campaignId }), JSON.stringify(call));
      const placed = read(answer, 202, placedCallSchema);
      if (placed.requestId !== call.requestId) throw notCallkey(answer);
      return { ...placed, replayed: answer.headers[replayedHeader.toLowerCase()] === 'true' };
    },
    async cancel(campaignId, call) {
      const path =
        'contactId' in call
          ? pathTo(paths.cancelCallByContact, { campaignId, contactId: call.contactId })
          : pathTo(paths.cancelCallByRequest, { campaignId, requestId: call.requestId });
      return read(await send('DELETE', path), 200, cancelledCallSchema);
    },
    close: () => agent.destroy(),
  };
}

function read<Schema extends z.ZodType>(answer: Answer, status: number, schema: Schema): z.output<Schema> {
  if (answer.status !== status) throw problemError(answer);
  const parsed = schema.safeParse(parseJson(answer.text));
  if (!parsed.success) throw notCallkey(answer);
  return parsed.data;
}

function notCallkey({ status }: Answer): CallkeyError {
  return new CallkeyError('failed', `The answer (${status}) is none that a Callkey core gives. Is the server address right?`);
}

function retryAfterText(headers: IncomingHttpHeaders): string {
  return headers['retry-after'] === undefined ? '' : `\n< Retry-After: ${headers['retry-after']}`;
}
