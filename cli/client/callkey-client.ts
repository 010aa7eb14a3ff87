import type { IncomingHttpHeaders } from 'node:http';
import { inspect } from 'node:util';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import {
  apiKeyHeader,
  cancelledCallSchema,
  isRequestId,
  keyExpiresHeader,
  onDemandRoutes,
  type PlaceCall,
  placedCallSchema,
  replayedHeader,
} from '#contract/calls/calls.ts';
import { createConnections } from '#contract/core-connections.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { invalidProxyAddress, readProxyAddress } from '#contract/proxies.ts';
import { withDeadline } from '#contract/request-deadline.ts';
import { pathTo } from '#contract/route.ts';
import { readServerAddress } from '#contract/server-address.ts';
import { isObject, parseJson } from '#contract/text/json.ts';
import { isIdentifier } from '#contract/text/text.ts';

// biome-ignore lint/style/noRestrictedImports: it's only for the version
import packageJson from '../../package.json' with { type: 'json' };
import { type Answer, errorDetails, problemError } from './answer.ts';
import { CallkeyError, usageError } from './errors.ts';
import { withRetries } from './retries.ts';
import { systemTiming, type Timing } from './timing.ts';
import type { Call, CallReference, CancelledCall, ClientOptions, PlacedCall, RequestOptions } from './types.ts';

const defaultUserAgent = `callkey-client/${packageJson.version} node/${process.versions.node}`;
/** In milliseconds. The core responds within 6 seconds. */
const defaultTimeout = 10_000;

/**
 * A client for the three key-authenticated endpoints of one core. If there's no response, or the response means "not now", it repeats the
 * request with the same ID, so no call is placed twice. It doesn't follow redirects, so the key isn't sent to another server.
 *
 * It throws only CallkeyErrors, or the reason of an aborted signal.
 */
export class CallkeyClient {
  readonly #options: ClientOptions;
  readonly #server: string;
  readonly #dispatcher: Dispatcher;
  readonly #closing = new AbortController();
  readonly #timing: Timing;

  /** @param timing replaced in tests @throws CallkeyError `usage` for an invalid option */
  constructor(options: ClientOptions, timing: Timing = systemTiming) {
    checkOptions(options);
    const read = readServerAddress(options.server);
    if (!read.ok) throw usageError(read.problem);
    this.#options = options;
    this.#timing = timing;
    this.#server = read.address;
    this.#dispatcher = createDispatcher(read.address, options.connections ?? 8, options.timeout ?? defaultTimeout);
  }

  /** Places a call once, however often it's repeated. `conflict`: the request ID was already used for a different call. */
  async place(campaignId: string, call: Call, { signal }: RequestOptions = {}): Promise<PlacedCall> {
    checkId('campaign', campaignId);
    const body = toRequestBody(call satisfies PlaceCall);
    const answer = await this.#send('POST', pathTo(onDemandRoutes.placeCall, { campaignId }), body, signal);
    const placed = readAnswer(answer, 202, placedCallSchema, this.#options.keySource);
    if (placed.requestId !== call.requestId) throw unexpectedAnswer(answer);
    return { ...placed, replayed: answer.headers[replayedHeader.toLowerCase()] === 'true' };
  }

  /** Cancels a call that hasn't been dialed. Can be repeated. `conflict`: the call has been dialed. `notFound`: the call doesn't exist. */
  async cancel(campaignId: string, call: CallReference, { signal }: RequestOptions = {}): Promise<CancelledCall> {
    checkId('campaign', campaignId);
    checkReference(call);
    const answer = await this.#send('DELETE', cancelPath(campaignId, call), null, signal);
    const cancelled = readAnswer(answer, 200, cancelledCallSchema, this.#options.keySource);
    const isAnother = 'contactId' in call ? cancelled.contactId !== call.contactId : cancelled.requestId !== call.requestId;
    if (isAnother) throw unexpectedAnswer(answer);
    return cancelled;
  }

  /** Stops requests in flight, which then reject as `unreachable`, and closes all connections. */
  close(): Promise<void> {
    const message =
      'The client was closed before it received a response. The call may have been placed. Place it again with the same request ID.';
    this.#closing.abort(new CallkeyError('unreachable', message));
    return this.#dispatcher.destroy();
  }

  async #send(method: 'POST' | 'DELETE', path: string, body: string | null, callerSignal: AbortSignal | undefined): Promise<Answer> {
    checkSignal(callerSignal);
    const closing = this.#closing.signal;
    if (closing.aborted) throw usageError('The client is closed. Create a new one.');
    const signal = callerSignal ? AbortSignal.any([callerSignal, closing]) : closing;
    const { retry, trace } = this.#options;
    const onRetry = (reason: string) => {
      callBack(trace, `! ${reason}; retrying`);
      callBack(retry?.onRetry, reason);
    };
    return withRetries(
      () => untilAborted(signal, () => this.#sendOnce(method, path, body, signal)),
      this.#server,
      { ...retry, onRetry },
      signal,
      this.#timing,
    );
  }

  async #sendOnce(method: 'POST' | 'DELETE', path: string, body: string | null, signal: AbortSignal): Promise<Answer> {
    const { keyValue, trace, onKeyEndsSoon, onAnswer, userAgent = defaultUserAgent } = this.#options;
    const { origin, pathname } = new URL(this.#server);
    const headers = {
      accept: 'application/json',
      'user-agent': userAgent,
      ...(body === null ? {} : { 'content-type': 'application/json' }),
    };
    callBack(trace, `> ${method} ${this.#server}${path}\n> ${apiKeyHeader}: [redacted]${body === null ? '' : `\n> ${body}`}`);
    const response = await this.#dispatcher.request({
      origin,
      // Doesn't use a URL object, which would resolve a request ID of two dots to another path.
      path: pathname.replace(/\/$/, '') + path,
      method,
      headers: { ...headers, [apiKeyHeader]: keyValue },
      body,
      signal,
    });
    const text = await response.body.text();
    callBack(trace, `< ${response.statusCode}${retryAfterLine(response.headers)}\n< ${text}`);
    const date = response.headers['date'];
    callBack(onAnswer, { date: typeof date === 'string' ? date : undefined });
    const expiresAt = response.headers[keyExpiresHeader.toLowerCase()];
    if (typeof expiresAt === 'string') callBack(onKeyEndsSoon, expiresAt);
    return { status: response.statusCode, headers: response.headers, text };
  }
}

/** Calls a function of the user's program. If that throws, only warns, because the request itself may have succeeded. */
function callBack<Value>(callback: ((value: Value) => unknown) | undefined, value: Value): void {
  new Promise((resolve) => resolve(callback?.(value))).catch((error: unknown) => {
    process.emitWarning(error instanceof Error ? error : String(error), 'CallkeyCallbackWarning');
  });
}

/** When the signal aborts, rejects immediately. undici would check the signal only when it's the request's turn on a connection. */
function untilAborted<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort));
  });
}

function cancelPath(campaignId: string, call: CallReference): string {
  if ('contactId' in call) return pathTo(onDemandRoutes.cancelCallByContact, { campaignId, contactId: call.contactId });
  return pathTo(onDemandRoutes.cancelCallByRequest, { campaignId, requestId: call.requestId });
}

function readAnswer<Schema extends z.ZodType>(answer: Answer, status: number, schema: Schema, keySource?: string): z.output<Schema> {
  if (answer.status !== status) throw problemError(answer, keySource);
  const parsed = schema.safeParse(parseJson(answer.text));
  if (!parsed.success) throw unexpectedAnswer(answer);
  return parsed.data;
}

function unexpectedAnswer(answer: Answer): CallkeyError {
  const message = `The response (${answer.status}) didn't come from a Callkey core. Check the server address.`;
  return new CallkeyError('failed', message, errorDetails(answer, Date.now()));
}

function retryAfterLine(headers: IncomingHttpHeaders): string {
  return headers['retry-after'] === undefined ? '' : `\n< Retry-After: ${headers['retry-after']}`;
}

// Checks of arguments from JavaScript callers, which no compiler has checked.

const count = z.int().min(1).max(10_000).optional();
const optionsSchema = z.looseObject({
  server: z.string(),
  keyValue: z.string().refine(isKeyValue, "This isn't a valid API key. Copy the whole key again."),
  connections: count,
  timeout: z.number().min(1).max(3_600_000).optional(),
  retry: z.looseObject({ attempts: count }).optional(),
  userAgent: z
    .string()
    .regex(/^[\x20-\x7e]+$/, 'Must be plain ASCII text, as HTTP requires.')
    .optional(),
});

/** @throws CallkeyError `usage`, without repeating any value */
function checkOptions(options: ClientOptions): void {
  const { error } = optionsSchema.safeParse(options);
  if (error) throw usageError(`Invalid CallkeyClient options.\n${z.prettifyError(error)}`);
}

/** Refuses any text that isn't an ID, because it could change the request path. @throws CallkeyError `usage` */
function checkId(of: 'campaign' | 'contact' | 'request', id: unknown): void {
  const isOne = of === 'request' ? isRequestId : isIdentifier;
  if (typeof id !== 'string' || !isOne(id)) throw usageError(`${inspect(id)} isn't a valid ${of} ID.`);
}

/** @throws CallkeyError `usage` */
function checkReference(call: CallReference): void {
  if (isObject(call) && 'contactId' in call) checkId('contact', call.contactId);
  else checkId('request', isObject(call) && 'requestId' in call ? call.requestId : undefined);
}

/** @returns the request body. @throws CallkeyError `usage` */
function toRequestBody(call: Call): string {
  checkId('request', isObject(call) ? call.requestId : undefined);
  try {
    return JSON.stringify(call);
  } catch (cause) {
    throw usageError("The call can't be converted to JSON: it contains a circular reference or a BigInt.", { cause });
  }
}

/** @throws CallkeyError `usage` */
function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw usageError('The signal must be an AbortSignal.');
}

const maxResponseBytes = 1024 * 1024;

/** Connects through HTTPS_PROXY, unless NO_PROXY has the core. @param timeout in ms, for a whole response @throws CallkeyError `usage` */
function createDispatcher(server: string, connections: number, timeout: number): Dispatcher {
  const proxy = server.startsWith('http:') ? '' : readProxyAddress(process.env);
  if (proxy === null) throw usageError(invalidProxyAddress);
  return createConnections({
    server,
    // Turns off undici's own timeouts, because withDeadline limits the time for the whole response.
    agent: { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, maxResponseSize: maxResponseBytes },
    proxy,
    proxyTimeout: timeout,
  }).compose(withDeadline(timeout));
}
