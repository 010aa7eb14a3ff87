import { Agent, buildConnector, type Dispatcher, request } from 'undici';
import type { Handoff } from '#contract/dialer.ts';
import { limits } from '#contract/limits.ts';
import { sign, signatureHeader } from '#contract/signature.ts';
import type { ClaimedCall, HandoffResult, Provider } from '../domain/dialing.ts';
import type { Clock } from '../domain/ports.ts';

const connectTimeout = 5_000;
const answerTimeout = 10_000;

/** Errors from before a byte of the request was sent, TLS included: the provider cannot have got it. */
const notSent = new WeakSet<Error>();

const openConnection = buildConnector({ timeout: connectTimeout });

/** Opens connections, and marks what goes wrong on the way. */
const connect: buildConnector.connector = (options, callback) => {
  openConnection(options, (...[error, socket]: buildConnector.CallbackArgs) => {
    if (error) notSent.add(error);
    if (error) callback(error, null);
    else callback(null, socket);
  });
};

/** POSTs each call, signed, to the provider's address. It reports outcomes in its own time. */
export function webhookProvider(
  options: { url: string; secrets: readonly string[]; deduplicates: boolean },
  clock: Clock,
): Provider & { close(): Promise<void> } {
  const agent = new Agent({ connect });
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
          signal: AbortSignal.timeout(answerTimeout),
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
  if (statusCode >= 200 && statusCode < 300) {
    body.dump().catch(() => undefined);
    return { kind: 'taken' };
  }
  const text = await readStart(body).catch(() => '');
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
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'connection lost';
  if (error instanceof Error && notSent.has(error)) return { kind: 'not-taken', detail: `The provider could not be reached (${code}).` };
  const reason = error instanceof Error && error.name === 'TimeoutError' ? 'no answer in time' : code;
  return { kind: 'answer-lost', detail: `The provider's answer was lost (${reason}).` };
}
