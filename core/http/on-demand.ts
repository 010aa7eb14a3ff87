import { apiKeyHeader, isRequestId, type PlaceCall, placeCallSchema, replayedHeader } from '#contract/calls.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { isIdentifier } from '#contract/text.ts';
import { digestOf } from '../domain/api-keys.ts';
import { authenticate, authorize, cancelCall, placeCall } from '../domain/calls.ts';
import type { Digest, Ports } from '../domain/ports.ts';
import { readBody } from './body.ts';
import { type Context, type HttpDeps, parameter, type Step } from './context.ts';
import { badEncoding, isDecodable } from './percent-encoding.ts';
import { refuse } from './problems.ts';
import { cancelledCallView, placedCallView } from './views.ts';

type KeyedHandler = (ctx: Context, ports: Ports, digest: Digest, campaignId: string) => Promise<void>;

const header = apiKeyHeader.toLowerCase();

/** What names nothing, put in place of what cannot name anything. */
const nothing = '';

/**
 * Reads the key header; the only place that does. A header that comes twice arrives joined, and is no key value.
 * Here a key is only told from a typo: whether it stands is asked together with what is to be done.
 */
export function withApiKey({ ports }: HttpDeps, handler: KeyedHandler): Step {
  return async (ctx) => {
    const keyValue = ctx.req.headers[header];
    if (typeof keyValue !== 'string' || !isKeyValue(keyValue)) return refuse(ctx);
    const digest = digestOf(keyValue);
    const campaignId = parameter(ctx, 'campaignId');
    ctx.set('Cache-Control', 'no-store');
    if (!isDecodable(ctx.url)) {
      await authenticate(ports, digest);
      throw badEncoding();
    }
    await handler(ctx, ports, digest, isIdentifier(campaignId) ? campaignId : nothing);
  };
}

export const place: KeyedHandler = async (ctx, ports, digest, campaignId) => {
  let input: PlaceCall;
  try {
    input = await readBody(ctx, placeCallSchema);
  } catch (problem) {
    // What is wrong with a body is told only to a key that is accepted: to any other, it is the same 401 as ever.
    await authorize(ports, digest, campaignId);
    throw problem;
  }
  const call = await placeCall(ports, digest, campaignId, input);
  if (call.replayed) ctx.set(replayedHeader, 'true');
  ctx.status = 202;
  ctx.body = placedCallView(call);
};

export const cancelByContact: KeyedHandler = async (ctx, ports, digest, campaignId) => {
  const contactId = parameter(ctx, 'contactId');
  ctx.body = cancelledCallView(await cancelCall(ports, digest, campaignId, { contactId: isIdentifier(contactId) ? contactId : nothing }));
};

export const cancelByRequest: KeyedHandler = async (ctx, ports, digest, campaignId) => {
  const requestId = parameter(ctx, 'requestId');
  ctx.body = cancelledCallView(await cancelCall(ports, digest, campaignId, { requestId: isRequestId(requestId) ? requestId : nothing }));
};
