import type { RequestListener } from 'node:http';
import { apiKeyHeader, isRequestId, type PlaceCall, placeCallSchema, replayedHeader } from '#contract/calls.ts';
import { isKeyValue } from '#contract/key-value.ts';
import { paths } from '#contract/paths.ts';
import { isIdentifier } from '#contract/text.ts';
import { digestOf } from '../domain/api-keys.ts';
import { authorize, cancelCall, keyIsActive, placeCall } from '../domain/calls.ts';
import { deadlines } from '../domain/deadlines.ts';
import type { Caller, Digest } from '../domain/model.ts';
import type { Ports } from '../domain/ports.ts';
import { readBody } from './body.ts';
import type { Exchange, OuterStep } from './context.ts';
import { badEncoding, isDecodable } from './percent-encoding.ts';
import { refuse, write } from './problems.ts';
import { cancelledCallView, placedCallView } from './views.ts';

type Parameters = Readonly<Record<string, string>>;
type KeyedHandler = (exchange: Exchange, ports: Ports, caller: Caller, parameters: Parameters) => Promise<void>;

const header = apiKeyHeader.toLowerCase();
const jsonHeaders = ['Cache-Control', 'no-store', 'Content-Type', 'application/json; charset=utf-8'];

const place: KeyedHandler = async (exchange, ports, caller, { campaignId }) => {
  const campaign = named(campaignId, isIdentifier);
  const started = performance.now();
  // The time that a client takes to send its body is its own.
  const afterBody = () => ({ ...caller, deadline: caller.deadline + performance.now() - started });
  let input: PlaceCall;
  try {
    input = await readBody(exchange, placeCallSchema);
  } catch (problem) {
    // What is wrong with a body is told only to a key that is accepted: to any other, it is the same 401 as ever.
    await authorize(ports, afterBody(), campaign);
    throw problem;
  }
  const call = await placeCall(ports, afterBody(), campaign, input);
  answer(exchange, 202, placedCallView(call), call.replayed ? [replayedHeader, 'true'] : []);
};

const cancelByContact: KeyedHandler = async (exchange, ports, caller, { campaignId, contactId }) => {
  const reference = { contactId: named(contactId, isIdentifier) };
  answer(exchange, 200, cancelledCallView(await cancelCall(ports, caller, named(campaignId, isIdentifier), reference)));
};

const cancelByRequest: KeyedHandler = async (exchange, ports, caller, { campaignId, requestId }) => {
  const reference = { requestId: named(requestId, isRequestId) };
  answer(exchange, 200, cancelledCallView(await cancelCall(ports, caller, named(campaignId, isIdentifier), reference)));
};

/** What cannot name anything is replaced by what names nothing. */
function named(text: string | undefined, canName: (text: string) => boolean): string {
  return text !== undefined && canName(text) ? text : '';
}

/** A key opens these three doors only. */
const doors = [
  door('POST', paths.placeCall, place),
  door('DELETE', paths.cancelCallByContact, cancelByContact),
  door('DELETE', paths.cancelCallByRequest, cancelByRequest),
];

function door(method: string, path: string, handler: KeyedHandler) {
  return { method, route: path, handler, form: new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`) };
}

/** What a key can do at a path. */
export function keyedMethods(path: string): string[] {
  return doors.filter(({ form }) => form.test(path)).map(({ method }) => method);
}

/**
 * The three key-authenticated endpoints. They are asked before Koa is, which takes as long for a request as all that is done for a
 * placed call here but for the database. A session cookie is not looked at.
 */
export function onDemand(ports: Ports, around: OuterStep, others: RequestListener): RequestListener {
  const recentlyAccepted = recentlyAcceptedKeys();
  return (req, res) => {
    const path = pathOf(req.url ?? '');
    for (const { method, form, route, handler } of doors) {
      const match = req.method === method ? form.exec(path) : null;
      if (!match) continue;
      const exchange: Exchange = { req, res, state: { route } };
      void around(exchange, () => withApiKey(exchange, ports, recentlyAccepted, handler, match.groups ?? {}));
      return;
    }
    others(req, res);
  };
}

/**
 * Reads the key header; the only place that does. A header that comes twice arrives joined, and is no key value.
 * A key that is not known to have stood is asked about first, so that a flood of bad keys costs a look-up each, and nothing else of
 * the request is read. Whether a familiar key still stands is asked together with what is to be done: being familiar lets nobody in.
 */
async function withApiKey(
  exchange: Exchange,
  ports: Ports,
  recentlyAccepted: RecentlyAcceptedKeys,
  handler: KeyedHandler,
  parameters: Parameters,
): Promise<void> {
  const { headers, url = '' } = exchange.req;
  const keyValue = headers[header];
  if (typeof keyValue !== 'string' || !isKeyValue(keyValue)) return refuse(exchange);
  const digest = digestOf(keyValue);
  const caller = { digest, deadline: performance.now() + deadlines.answer };
  const isPlain = !url.includes('%');
  if (!(isPlain && recentlyAccepted.has(digest)) && !(await keyIsActive(ports, caller))) return refuse(exchange);
  if (!isDecodable(url)) throw badEncoding();
  try {
    await handler(exchange, ports, caller, isPlain ? parameters : decoded(parameters));
    recentlyAccepted.add(digest);
  } catch (error) {
    recentlyAccepted.delete(digest);
    throw error;
  }
}

/** Without the query. Proxies may send whole addresses (RFC 9112 §3.2.2). */
function pathOf(target: string): string {
  const path = target.startsWith('/') ? target : (URL.parse(target)?.pathname ?? '');
  const end = path.indexOf('?');
  return end < 0 ? path : path.slice(0, end);
}

type RecentlyAcceptedKeys = ReturnType<typeof recentlyAcceptedKeys>;

/** Keys whose last request went well: which question is asked first depends on it, and nothing else. */
function recentlyAcceptedKeys() {
  const digests = new Set<Digest>();
  const most = 10_000;
  return {
    has: (digest: Digest) => digests.has(digest),
    add(digest: Digest) {
      if (digests.size >= most) digests.clear();
      digests.add(digest);
    },
    delete: (digest: Digest) => digests.delete(digest),
  };
}

function decoded(parameters: Parameters): Parameters {
  return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, decodeURIComponent(value)]));
}

function answer(exchange: Exchange, status: number, view: object, more: readonly string[] = []): void {
  write(exchange, status, [...jsonHeaders, ...more], JSON.stringify(view));
}
