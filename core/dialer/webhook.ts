import { Agent, buildConnector, Client, type Dispatcher, request } from 'undici';
import type { Handoff } from '#contract/calls/dialer.ts';
import { sign } from '#contract/calls/signature.ts';
import { limits } from '#contract/limits.ts';
import { parseRetryAfter } from '#contract/parse-retry-after.ts';
import { cutCodePoints, timestamp } from '#contract/text/text.ts';
import { dialingLimits, mayBegin } from '../domain/calls/dialing.ts';
import type { Millis } from '../domain/instant.ts';
import type { ClaimedCall, Clock, HandoffResult, Provider } from '../domain/ports.ts';
import { errorCode } from '../domain/problem.ts';

/** In ms. `answer` includes connecting, so `connect` must be shorter: then, a call to a provider that's down counts as not received. */
export const timeouts = { connect: 5_000, answer: dialingLimits.answer.toMillis() };

/** Gets each call as a signed POST, and reports the outcomes itself. */
export function webhookProvider(options: { url: string; secrets: readonly string[]; deduplicates: boolean }, clock: Clock): Provider {
  const connections = openConnections(timeouts.connect);
  const [secret = ''] = options.secrets;

  return {
    name: 'webhook',
    deduplicates: options.deduplicates,
    async handOff(call) {
      const body = JSON.stringify(toHandoff(call));
      const dispatcher = connections.openWhile(options.url, () => mayBegin(call, performance.now()));
      try {
        const response = await request(options.url, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', ...sign(call.contactId, body, secret, Math.floor(clock.now() / 1_000)) },
          body,
          dispatcher,
          // Each request opens a new connection. If the provider closed a reused connection at that moment, it would be unclear whether it
          // received the call.
          reset: true,
          signal: AbortSignal.timeout(Math.max(0, Math.ceil(call.claimedAt + timeouts.answer - performance.now()))),
        });
        return await toResult(response, clock.now());
      } catch (error) {
        return toFailure(error, connections);
      } finally {
        dispatcher.close().catch(() => undefined);
      }
    },
    // When this is called, the provider should already have reported the outcome.
    conclude: () => null,
  };
}

function toHandoff(call: ClaimedCall): Handoff {
  return {
    handoffId: call.contactId,
    requestId: call.requestId,
    contactId: call.contactId,
    campaignId: call.campaignId,
    contact: {
      phone: call.phone,
      ...(call.name === null ? {} : { name: call.name }),
      ...(call.timeZone === null ? {} : { timeZone: call.timeZone }),
    },
    variables: { ...call.variables },
    placedAt: timestamp(call.placedAt),
    campaign: { id: call.campaignId, name: call.campaign.name, settings: { ...call.campaign.settings } },
    account: call.campaign.account,
    partner: call.campaign.partner,
  };
}

/** A 401 rejects the core's signature or clock, not the call: until someone has fixed the secret or a clock, every call would get a 401. */
async function toResult({ statusCode, headers, body }: Dispatcher.ResponseData, now: Millis): Promise<HandoffResult> {
  // The status determines the result, even if the body is cut off.
  if (statusCode >= 200 && statusCode < 300) {
    body.dump().catch(() => undefined);
    return { kind: 'taken' };
  }
  const text = await readStart(body).catch(() => '');
  const detail = `The provider returned ${statusCode}${text === '' ? '.' : `: ${text}`}`;
  const reason = statusCode === 401 ? "HTTP 401, so it doesn't accept the signature or the time" : `HTTP ${statusCode}`;
  if (statusCode !== 401 && statusCode !== 429 && statusCode < 500) return { kind: 'rejected', detail, reason };
  const [header] = [headers['retry-after'] ?? []].flat();
  const retryAfter = Math.ceil(parseRetryAfter(header, now) / 1_000);
  return { kind: 'not-taken', detail, reason, ...(retryAfter > 0 ? { retryAfter } : {}) };
}

/** For the call's details. */
async function readStart(body: Dispatcher.ResponseData['body']): Promise<string> {
  let text = '';
  for await (const chunk of body.setEncoding('utf8')) {
    text += chunk;
    if (text.length >= limits.detail) break;
  }
  const line = text
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .trim();
  return cutCodePoints(line, limits.detail - 40);
}

function toFailure(error: unknown, { unsentReason }: Connections): HandoffResult {
  const reason = unsentReason(error);
  if (reason !== null) return { kind: 'not-taken', detail: `The provider couldn't be reached: ${reason}.`, reason };
  const cause = error instanceof Error && error.name === 'TimeoutError' ? 'no response in time' : errorCode(error) || 'connection lost';
  return { kind: 'answer-lost', detail: `The provider's response was lost (${cause}).`, reason: `no response (${cause})` };
}

/** For requests that must not be repeated if they may have been received: also in the recipes in `scripts/providers`. */
type Connections = {
  dispatcher: Dispatcher;
  /** Returns a dispatcher for one request, which is sent only if it may still begin when the connection is open. */
  openWhile(url: string, mayBegin: () => boolean): Dispatcher;
  /**
   * Says why the request definitely wasn't sent: the connection couldn't be opened, or TLS failed. Returns null if the first byte may have
   * been sent, because no later error shows how much arrived.
   */
  unsentReason(error: unknown): string | null;
};

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host name not resolved',
  ETIMEDOUT: 'connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'connection timed out',
};

/** @param timeout in ms, for connecting including TLS. Must be shorter than the caller's wait for the response */
export function openConnections(timeout: number): Connections {
  const openOne = buildConnector({ timeout });
  const notSent = new WeakSet<Error>();
  const connectWhile =
    (mayBegin: () => boolean): buildConnector.connector =>
    (options, callback) => {
      openOne(options, (...[error, socket]: buildConnector.CallbackArgs) => {
        if (!error && mayBegin()) return callback(null, socket);
        socket?.destroy();
        const refusal = error ?? new Error('connecting took too long');
        notSent.add(refusal);
        callback(refusal, null);
      });
    };
  return {
    dispatcher: new Agent({ connect: connectWhile(() => true) }),
    openWhile: (url, mayBegin) => new Client(new URL(url).origin, { connect: connectWhile(mayBegin) }),
    unsentReason(error) {
      if (!(error instanceof Error) || !notSent.has(error)) return null;
      const code = errorCode(error);
      return reasons[code] ?? (code || error.message);
    },
  };
}
