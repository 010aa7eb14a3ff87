import { Agent, type Dispatcher, errors, request } from 'undici';
import type { Handoff } from '#contract/dialer.ts';
import { limits } from '#contract/limits.ts';
import { sign, signatureHeader } from '#contract/signature.ts';
import type { ClaimedCall, HandoffResult, Provider } from '../domain/dialing.ts';
import type { Clock } from '../domain/ports.ts';

const connectTimeout = 5_000;
const answerTimeout = 10_000;

/** These come before a byte of the request is sent: the provider cannot have got it. */
const notSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

/** POSTs each call, signed, to the provider's address. It reports outcomes in its own time. */
export function webhookProvider(
  options: { url: string; secrets: readonly string[]; deduplicates: boolean },
  clock: Clock,
): Provider & { close(): Promise<void> } {
  const agent = new Agent({ connect: { timeout: connectTimeout }, headersTimeout: answerTimeout, bodyTimeout: answerTimeout });
  const [secret = ''] = options.secrets;

  return {
    name: 'webhook',
    deduplicates: options.deduplicates,
    async handOff(call) {
      const body = JSON.stringify(handoffOf(call));
      try {
        const response = await request(options.url, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', [signatureHeader]: sign(body, secret, clock.now().toUnixInteger()) },
          body,
          dispatcher: agent,
          // A kept connection that the other side closes just now would leave in doubt whether it got the call. Redirects are not followed.
          reset: true,
        });
        return await resultOf(response);
      } catch (error) {
        return failureOf(error);
      }
    },
    // Outcomes are reported; one that is due has not been.
    conclude: () => null,
    close: () => agent.close(),
  };
}

function handoffOf(call: ClaimedCall): Handoff {
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
    placedAt: new Date(call.placedAt).toISOString(),
  };
}

async function resultOf({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<HandoffResult> {
  // The status has come: whatever happens to the body, the answer is known.
  const text = await readStart(body).catch(() => '');
  if (statusCode >= 200 && statusCode < 300) return { kind: 'taken' };
  const detail = `The provider answered ${statusCode}${text === '' ? '.' : `: ${text}`}`;
  if (statusCode === 429 || statusCode >= 500) {
    const retryAfter = Number(headers['retry-after']);
    return { kind: 'not-taken', detail, ...(Number.isFinite(retryAfter) && retryAfter > 0 ? { retryAfter } : {}) };
  }
  return { kind: 'rejected', detail };
}

/** As much of an answer as is kept as a reason. */
async function readStart(body: Dispatcher.ResponseData['body']): Promise<string> {
  let text = '';
  for await (const chunk of body.setEncoding('utf8')) {
    text += chunk;
    if (text.length >= limits.detail) break;
  }
  return Array.from(
    text
      .toWellFormed()
      .replace(/\p{Cc}+/gu, ' ')
      .trim(),
  )
    .slice(0, limits.detail - 40)
    .join('');
}

function failureOf(error: unknown): HandoffResult {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  const isTls = /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code);
  if (notSent.has(code) || isTls) return { kind: 'not-taken', detail: `The provider could not be reached (${code}).` };
  const reason = error instanceof errors.HeadersTimeoutError ? 'no answer in time' : code || 'connection lost';
  return { kind: 'answer-lost', detail: `The provider's answer was lost (${reason}).` };
}
