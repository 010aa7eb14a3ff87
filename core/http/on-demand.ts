import {
  type CancelledCallView,
  isRequestId,
  onDemandRoutes,
  type PlaceCall,
  type PlacedCallView,
  requestIdRule,
  validatePlaceCall,
} from '#contract/calls/calls.ts';
import { expiresSoon } from '#contract/expiry.ts';
import { apiKeyHeader, replayedHeader } from '#contract/headers.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { limits } from '#contract/limits.ts';
import type { Route } from '#contract/route.ts';
import { isDecodable } from '#contract/server-address.ts';
import { isIdentifier, timestamp } from '#contract/text/text.ts';
import { allowsAddress, toDigest } from '../domain/api-keys.ts';
import { authorize, type CancelledCall, cancelCall, findActiveKey, type PlacedCall, placeCall } from '../domain/calls/place-and-cancel.ts';
import { deadlines } from '../domain/deadlines.ts';
import type { Digest } from '../domain/model.ts';
import type { ActiveKey, KeyCaller, Ports } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { dataOrThrow, parseInTurn, readJsonBytes } from './middleware/body.ts';
import type { Context, HttpDeps, Middleware } from './middleware/context.ts';
import { badEncoding, jsonLine, quotaHeaders, refuse, write } from './middleware/every-request.ts';
import { waitForNetworkTurn } from './middleware/turns.ts';

const maxRemembered = 10_000;

/** The IDs in the path, by name. */
type Ids = Readonly<Record<string, string>>;

/** A key works only for these three routes. */
const routes = [
  matching(onDemandRoutes.placeCall, place),
  matching(onDemandRoutes.cancelCallByContact, cancel),
  matching(onDemandRoutes.cancelCallByRequest, cancel),
];

function matching({ method, path }: Route, handler: (ctx: Context, ports: Ports, caller: KeyCaller, ids: Ids) => Promise<void>) {
  return { method, path, handler, pattern: new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`) };
}

export function onDemandMethods(path: string): string[] {
  return routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
}

/**
 * The three key-authenticated endpoints ignore session cookies. They run before the session and the router, and write their own responses,
 * because the router and `ctx.body` take 3 to 4 µs per request, which is 10% of a placed call.
 */
export function onDemand({ ports, getClientAddress, refusals }: HttpDeps): Middleware {
  /** Keys whose last request was accepted. This decides only which query runs first. Storage updates their limits and `fullOn`. */
  const recentlyAccepted = new Map<Digest, ActiveKey>();
  const remember = (digest: Digest, key: ActiveKey) => {
    if (recentlyAccepted.size >= maxRemembered) recentlyAccepted.clear();
    recentlyAccepted.set(digest, key);
  };
  const refuseKey = (ctx: Context, address: string) => {
    refusals.onKeyRefused(address);
    refuse(ctx);
  };

  return async (ctx, next) => {
    const match = findRoute(ctx);
    if (!match) return next();
    ctx.state.route = match.path;

    const keyValue = readKeyValue(ctx);
    const address = getClientAddress(ctx);
    if (keyValue === null) {
      await waitForNetworkTurn(address);
      return refuseKey(ctx, address);
    }
    const caller = { digest: toDigest(keyValue), address, deadline: performance.now() + deadlines.answer };
    const isPlain = !ctx.url.includes('%');
    // First look up a key that wasn't accepted recently, so that each request in a flood of bad keys costs only one lookup, and its body
    // isn't read. A remembered key skips this lookup, but isn't accepted yet: the statement that does the work decides.
    const known = isPlain ? recentlyAccepted.get(caller.digest) : undefined;
    const key = known && allowsAddress(known.limits, caller.address) ? known : await findActiveKey(ports, caller);
    if (!key) return refuseKey(ctx, address);
    if (expiresSoon(key.expiresAt, ports.clock.now())) ctx.state.keyExpiresAt = timestamp(key.expiresAt);
    if (!isPlain && !isDecodable(ctx.url)) throw badEncoding();
    try {
      const ids = isPlain ? match.ids : Object.fromEntries(Object.entries(match.ids).map(([name, id]) => [name, decodeURIComponent(id)]));
      await match.handler(ctx, ports, { ...caller, key }, ids);
      remember(caller.digest, key);
    } catch (error) {
      // A key that has placed all its calls for today is still accepted. Remember it, so that its next requests only read.
      if (error instanceof Problem && error.code === 'too-many-calls') remember(caller.digest, key);
      else recentlyAccepted.delete(caller.digest);
      if (error instanceof Problem && error.code === 'unauthorized') return refuseKey(ctx, address);
      throw error;
    }
  };
}

async function place(ctx: Context, ports: Ports, caller: KeyCaller, { campaignId }: Ids): Promise<void> {
  const campaign = validOrEmpty(campaignId, isIdentifier);
  const started = performance.now();
  // The time that the client takes to send the body doesn't count toward the deadline.
  const afterBody = () => ({ ...caller, deadline: caller.deadline + performance.now() - started });
  let timed: KeyCaller | undefined;
  let input: PlaceCall;
  try {
    const bytes = await readJsonBytes(ctx, limits.bodyBytes);
    timed = afterBody();
    input = withIdempotencyKey(ctx, dataOrThrow(validatePlaceCall(await parseInTurn(bytes, caller.digest))));
  } catch (problem) {
    // Check access before reporting errors in the body, so that only a key with access to the campaign learns what's wrong with the body.
    // All other keys get the same refusal as with a valid body.
    await authorize(ports, timed ?? afterBody(), campaign);
    throw problem;
  }
  const call = await placeCall(ports, timed, campaign, input);
  const replayed = call.replayed ? [replayedHeader, 'true'] : [];
  answer(ctx, onDemandRoutes.placeCall.status, placedCallView(call), [...replayed, ...quotaHeaders(call.quota)]);
}

/**
 * Uses the `Idempotency-Key` header as an alternative to `requestId`, with or without quotes (draft-ietf-httpapi-idempotency-key-header).
 *
 * @throws Problem `invalid`
 */
function withIdempotencyKey({ req }: Context, input: PlaceCall): PlaceCall {
  const header = req.headers[idempotencyKeyHeader];
  if (header === undefined) return input;
  const requestId = String(header).replace(/^"(.*)"$/, '$1');
  if (!isRequestId(requestId)) throw invalidIdempotencyKey(`Must be ${requestIdRule}, with or without double quotes.`);
  if (input.requestId !== undefined && input.requestId !== requestId) {
    throw invalidIdempotencyKey("Doesn't match requestId in the body. Send only one of them, or the same value in both.");
  }
  return { ...input, requestId };
}

function invalidIdempotencyKey(message: string): Problem {
  return new Problem('invalid', `Invalid Idempotency-Key header: ${message}`, { errors: [{ path: 'Idempotency-Key', message }] });
}

async function cancel(ctx: Context, ports: Ports, caller: KeyCaller, { campaignId, contactId, requestId }: Ids): Promise<void> {
  const reference =
    contactId === undefined ? { requestId: validOrEmpty(requestId, isRequestId) } : { contactId: validOrEmpty(contactId, isIdentifier) };
  const call = await cancelCall(ports, caller, validOrEmpty(campaignId, isIdentifier), reference);
  answer(ctx, onDemandRoutes.cancelCallByRequest.status, cancelledCallView(call));
}

/** Replaces an impossible ID with an ID that doesn't exist, so that both get the same response. */
function validOrEmpty(text: string | undefined, isValid: (text: string) => boolean): string {
  return text !== undefined && isValid(text) ? text : '';
}

function findRoute(ctx: Context) {
  const { method: sent, url = '' } = ctx.req;
  const path = toPath(url);
  for (const { method, pattern, path: name, handler } of routes) {
    const match = sent === method ? pattern.exec(path) : null;
    if (match) return { path: name, handler, ids: match.groups ?? {} };
  }
  return undefined;
}

/** Proxies may send complete URLs (RFC 9112 §3.2.2). */
function toPath(target: string): string {
  const path = target.startsWith('/') ? target : (URL.parse(target)?.pathname ?? '');
  const end = path.indexOf('?');
  return end < 0 ? path : path.slice(0, end);
}

const keyHeader = apiKeyHeader.toLowerCase();
const idempotencyKeyHeader = 'idempotency-key';

/** No other code reads the key header. If it was sent twice, Node joins the values, and the result isn't a valid key value. */
function readKeyValue({ req }: Context): string | null {
  const value = req.headers[keyHeader];
  return typeof value === 'string' && isKeyValue(value) ? value : null;
}

const jsonHeaders = ['Cache-Control', 'no-store', 'Content-Type', 'application/json; charset=utf-8'];

function answer(ctx: Context, status: number, view: object, more: readonly string[] = []): void {
  write(ctx, status, [...jsonHeaders, ...more], jsonLine(view));
}

function placedCallView(call: PlacedCall): PlacedCallView {
  const { requestId, contactId, campaignId, placedAt, heldUntil } = call;
  const view: PlacedCallView = { requestId, contactId, campaignId, state: 'queued', placedAt: timestamp(placedAt) };
  if (heldUntil !== null) view.heldUntil = timestamp(heldUntil);
  return view;
}

function cancelledCallView(call: CancelledCall): CancelledCallView {
  const { requestId, contactId, campaignId, cancelledAt } = call;
  return { requestId, contactId, campaignId, state: 'cancelled', cancelledAt: timestamp(cancelledAt) };
}
