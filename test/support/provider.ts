import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { expect } from 'chai';
import { type Handoff, handoffSchema } from '#contract/calls/dialer.ts';
import { sign } from '#contract/calls/signature.ts';
import { type CoreOptions, openCore } from './core.ts';
import type { DatabaseKind } from './databases.ts';
import { type Answer, ask } from './http.ts';
import { listenHere } from './listen.ts';
import { openOnce } from './suites.ts';
import { createKey, onDemand, placeCall, restoreForEach, signIn, somePhone } from './tenants.ts';
import { until } from './until.ts';

/** The secret that the core and provider share in tests. */
export const signingSecret = `whsec_${'core'.repeat(10)}`;

export type Received = { handoff: Handoff; headers: IncomingMessage['headers']; body: Buffer };

/** Starts a provider's receiving side. Responds to each hand-off as the test specifies, or else with 202. */
export async function startReceiver(
  answer: (received: Received, response: ServerResponse) => unknown = (_, response) => response.writeHead(202).end(),
  port = 0,
) {
  const received: Received[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = createServer(async (request, response) => {
    // A core that is killed may have sent only a part of its request.
    const body = await buffer(request).catch(() => null);
    if (!body?.length) return;
    const one = { handoff: handoffSchema.parse(JSON.parse(body.toString())), headers: request.headers, body };
    received.push(one);
    await answer(one, response);
    for (const { count, resolve } of waiting) if (received.length >= count) resolve();
  });
  const { url, close } = await listenHere(server, port);
  return {
    ...{ url: `${url}/calls`, received, close },
    /** Waits until this many hand-offs have arrived. */
    async until(count: number): Promise<void> {
      if (received.length < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }));
    },
  };
}

/** The core accepts outcomes that are signed with this secret, but signs nothing with it. */
export const olderSecret = `whsec_${'old1'.repeat(10)}`;

type Receive = NonNullable<Parameters<typeof startReceiver>[0]>;

/**
 * Starts a core that dials through a provider, for all tests of a suite. For each test, the database has only the tenants, Ada's session and
 * her key, and the provider has got no hand-offs.
 */
export function dialerOnce(kind: DatabaseKind, { environment = {}, ...options }: CoreOptions = {}) {
  const accept: Receive = (_, response) => response.writeHead(202).end();
  let answer = accept;
  const its = openOnce(async () => {
    const receiver = await startReceiver((received, response) => answer(received, response));
    const webhook = { DIALER: 'webhook', DIALER_URL: receiver.url, DIALER_SECRETS: `${signingSecret},${olderSecret}` };
    const harness = await openCore({ kind, environment: { ...webhook, ...environment }, ...options });
    const cookie = await signIn(harness.core.url, 'ada@example.com');
    const { keyValue: key } = await createKey(harness.core.url, cookie);
    const close = () => harness.close().finally(receiver.close);
    return { ...harness, receiver, cookie, key, close };
  });
  restoreForEach(() => its.direct);
  beforeEach(() => {
    its.receiver.received.length = 0;
    answer = accept;
  });

  const call = async (contactId: string): Promise<Record<string, unknown>> =>
    (await its.direct.storage.database.read('calls').where({ contact_id: contactId }).first()) ?? {};
  return Object.assign(its, {
    /** Sets how the provider responds to this test's hand-offs, instead of with 202. */
    answerWith(next: Receive): void {
      answer = next;
    },
    place: (body: object = {}): Promise<Answer> =>
      placeCall(its.core.url, its.tenants.campaign.id, its.key, { contact: { phone: somePhone() }, ...body }),
    cancel: (contactId: string): Promise<Answer> =>
      ask('DELETE', `${onDemand(its.core.url, its.tenants.campaign.id)}/${contactId}`, { key: its.key }),
    /** The call's row. */
    call,
    /** Waits until the call is in one of these states. */
    async untilState(contactId: string, ...states: string[]) {
      await until(async () => states.includes(String((await call(contactId))['state'])));
      return call(contactId);
    },
    /** Reports an outcome as the provider. @param body text is sent as it is */
    outcome(body: object | string, secret = signingSecret): Promise<Answer> {
      const raw = typeof body === 'string' ? body : JSON.stringify(body);
      const headers = sign('any', raw, secret, Math.floor(Date.now() / 1_000));
      return ask('POST', `${its.core.url}/dialer/outcomes`, { raw, headers });
    },
  });
}

/** A request from a recipe to its provider. */
export type ProviderRequest = { path: string; headers: IncomingMessage['headers']; body: string };

type Response = number | [status: number, body: string];

/** Starts a provider's API on this machine. Responds to POST requests with these statuses in order, and then with 201. */
export async function startProviderApi() {
  const requests: ProviderRequest[] = [];
  const statuses: Response[] = [];
  /** The response to a GET request, by path. */
  const api: { resources: Record<string, object> } = { resources: { '/ari/channels': [] } };
  const server: Server = createServer(async (request, response) => {
    const path = request.url ?? '';
    if (request.method === 'GET') {
      return response
        .writeHead(api.resources[path] ? 200 : 404, { 'Content-Type': 'application/json' })
        .end(JSON.stringify(api.resources[path] ?? {}));
    }
    requests.push({ path, headers: request.headers, body: await text(request) });
    const next = statuses.shift() ?? 201;
    const [status, body] = typeof next === 'number' ? [next, '{"message":"the number is not valid"}'] : next;
    return response.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
  });
  const { url, close } = await listenHere(server);
  return Object.assign(api, { requests, statuses, server, url, close });
}

/** Opens the events of Asterisk's WebSocket in RFC 6455 frames. */
export async function openEvents(server: Server): Promise<{ send: (event: object | string) => void; end: () => void }> {
  const [request, socket]: [IncomingMessage, Socket] = await new Promise((resolve) => {
    server.once('upgrade', (...upgrade) => resolve([upgrade[0], upgrade[1] as Socket]));
  });
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  expect(request.url).to.equal('/ari/events?app=callkey&subscribeAll=true');
  const send = (event: object | string) => {
    const data = Buffer.from(typeof event === 'string' ? event : JSON.stringify(event));
    const length = data.length < 126 ? [data.length] : [126, data.length >> 8, data.length & 255];
    socket.write(Buffer.concat([Buffer.from([0x81, ...length]), data]));
  };
  return { send, end: () => socket.destroy() };
}
