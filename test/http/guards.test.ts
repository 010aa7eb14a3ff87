import { once } from 'node:events';
import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { expect } from 'chai';
import Koa from 'koa';
import { sign } from '#contract/calls/signature.ts';
import { pathTo } from '#contract/routes/route.ts';
import { routes } from '#contract/routes.ts';
import { instant } from '../../core/domain/instant.ts';
import { Problem, ResultUnknown } from '../../core/domain/problem.ts';
import { readBytes } from '../../core/http/middleware/body.ts';
import { clientAddress } from '../../core/http/middleware/client-address.ts';
import type { State } from '../../core/http/middleware/context.ts';
import { problems } from '../../core/http/middleware/problems.ts';
import { requestId } from '../../core/http/middleware/request-id.ts';
import { countNotServed } from '../../core/server/refusals.ts';
import { createLog } from '../../core/server/start/log.ts';
import { fakeClock } from '../support/clock.ts';
import { startCoreHere } from '../support/core.ts';
import { type CoreHarness, openCore } from '../support/core-harness.ts';
import { type Ask, ask, overSocket, readCode } from '../support/http.ts';
import { signingSecret } from '../support/receiver.ts';
import { createKey, onDemand, signIn, somePhone } from '../support/tenants.ts';

describe('the checks for every route', () => {
  let harness: CoreHarness;
  let cookie: string;
  let key: string;
  let endpoint: string;

  before(async () => {
    harness = await openCore();
    cookie = await signIn(harness.core.url, 'ada@example.com');
    key = (await createKey(harness.core.url, cookie)).keyValue;
    endpoint = onDemand(harness.core.url, harness.tenants.campaign.id);
  });
  after(() => harness.close());

  const call = () => JSON.stringify({ contact: { phone: somePhone() } });
  const place = (raw: string | Buffer, headers: Record<string, string> = {}) => ask('POST', endpoint, { key, raw, headers });
  /** A problem as its caller sees it. */
  const readProblem = async (asking: ReturnType<typeof ask>) => {
    const answer = await asking;
    return `${answer.status} ${readCode(answer)}: ${answer.json['detail']}`;
  };
  const inConsole = (method: string, path: string, more: Ask = {}) => ask(method, harness.core.url + path, { cookie, ...more });

  for (const type of ['application/json', 'APPLICATION/JSON', 'application/json;charset=utf-8', 'application/json ; charset="UTF-8" ']) {
    it(`accept a body with the type ${type}`, async () => {
      expect((await place(call(), { 'Content-Type': type })).status).to.equal(202);
    });
  }

  for (const type of [
    '',
    'text/plain',
    'application/jsonx',
    'x-application/json',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; a=b',
  ]) {
    it(`refuse a body with the type ${JSON.stringify(type)}`, async () => {
      const refusal = '415 unsupported-media-type: Send UTF-8 JSON with Content-Type: application/json.';
      expect(await readProblem(place(call(), { 'Content-Type': type }))).to.equal(refusal);
    });
  }

  it('accept only uncompressed bodies', async () => {
    expect((await place(call(), { 'Content-Encoding': 'identity' })).status).to.equal(202);
    const refusal = '415 unsupported-media-type: Send the body without Content-Encoding.';
    expect(await readProblem(place(call(), { 'Content-Encoding': 'gzip' }))).to.equal(refusal);
  });

  it('accept a body of up to 64 KiB, and not a byte more', async () => {
    const body = call();
    expect((await place(body.padEnd(65_536))).status).to.equal(202);
    expect(await readProblem(place(body.padEnd(65_537)))).to.equal('413 too-large: The body must be at most 65536 bytes.');
  });

  it('accept a body of up to 8 KiB without a key, and not a byte more', async () => {
    const tryIn = (raw: string) => ask('POST', harness.core.url + routes.signIn.path, { raw });
    const body = JSON.stringify({ email: 'nobody@example.com', password: 'a wrong password' });
    expect((await tryIn(body.padEnd(8_192))).status).to.equal(401);
    expect(await readProblem(tryIn(body.padEnd(8_193)))).to.equal('413 too-large: The body must be at most 8192 bytes.');
  });

  for (const [what, raw] of [
    ["that isn't JSON", '{'],
    ["that isn't UTF-8", Buffer.from([0x22, 0xff, 0x22])],
    ['without content', ''],
  ] as const) {
    it(`refuse a body ${what}`, async () => {
      expect(await readProblem(place(raw))).to.equal("400 malformed-request: The body isn't valid JSON in UTF-8.");
    });
  }

  it('name the first error of a body, and at most fifty in total', async () => {
    const phone = 'Must be a phone number in E.164 format, such as +493012345678.';
    expect(await readProblem(place('{"contact":{"phone":"1"}}'))).to.equal(`422 invalid: Invalid body at contact.phone: ${phone}`);
    expect(await readProblem(place('[]'))).to.match(/^422 invalid: Invalid body: \S/);
    const unknown = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`f${n}`, 1]));
    expect((await place(JSON.stringify({ ...JSON.parse(call()), ...unknown }))).json['errors']).to.have.length(50);
  });

  it('name the error in a query, and ignore empty parameters', async () => {
    const calls = pathTo(routes.listCalls, { id: harness.tenants.campaign.id });
    expect(await readProblem(inConsole('GET', `${calls}?state=ringing`))).to.match(
      /^400 malformed-request: Invalid query at state: Must be one of queued, /,
    );
    expect(await readProblem(inConsole('GET', `${calls}?searhc=x`))).to.equal(
      '400 malformed-request: Invalid query at searhc: Unknown field.',
    );
    expect((await inConsole('GET', `${calls}?state=&search=`)).status).to.equal(200);
  });

  it('tell a signed-in user what is wrong with a URL', async () => {
    expect(await readProblem(inConsole('GET', '/nowhere'))).to.equal('404 not-found: Nothing exists at this path.');
    expect(await readProblem(inConsole('GET', '/console/%zz'))).to.equal('400 malformed-request: The URL has invalid percent-encoding.');
    expect(await readProblem(inConsole('GET', '/console/users?a=%zz'))).to.equal(
      '400 malformed-request: The URL has invalid percent-encoding.',
    );
    const wrongMethod = await inConsole('PUT', routes.listApiKeys.path);
    expect([wrongMethod.json['detail'], wrongMethod.headers['allow']]).to.deep.equal(['Use HEAD, GET, POST.', 'HEAD, GET, POST']);
    const outcomes = await inConsole('GET', routes.reportOutcome.path);
    expect([outcomes.status, outcomes.headers['allow']]).to.deep.equal([405, 'POST']);
    const onACall = await ask('GET', `${endpoint}/some-call`, { cookie });
    expect([onACall.status, onACall.headers['allow']]).to.deep.equal([405, 'DELETE']);
  });

  it('match a route in any form of URL that HTTP allows', async () => {
    expect((await ask('POST', `${endpoint}?a=b`, { key, raw: call() })).status).to.equal(202);
    const head = (target: string) => `POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: ${key}\r\n`;
    const body = call();
    const more = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    expect(await overSocket(harness.core.url, head(`${endpoint}?a=b`) + more)).to.match(/^HTTP\/1\.1 202 /);
    expect(await overSocket(harness.core.url, head(`x${new URL(endpoint).pathname}`) + more)).to.match(/^HTTP\/1\.1 40\d /);
  });

  it("read a key from the database only once while it's accepted, and again after a refusal", async () => {
    const { keyValue } = await createKey(harness.core.url, cookie);
    const lookUps = async () => {
      const { text } = await ask('GET', `${harness.core.managementUrl}/metrics`);
      return Number(/_count\{operation="look up"\} (\d+)/.exec(text)?.[1]);
    };
    const before = await lookUps();
    const placing = async (campaign: string) =>
      (await ask('POST', onDemand(harness.core.url, campaign), { key: keyValue, raw: call() })).status;
    const campaign = harness.tenants.campaign.id;
    expect([await placing(campaign), await placing(campaign), (await lookUps()) - before]).to.deep.equal([202, 202, 1]);
    expect([await placing('none'), await placing(campaign), (await lookUps()) - before]).to.deep.equal([403, 202, 2]);
  });

  it('return 404 for an impossible ID', async () => {
    expect(await readProblem(inConsole('GET', '/console/api-keys/a%20b?timeZone=UTC'))).to.equal(
      "404 not-found: It doesn't exist, or you don't have access to it.",
    );
  });

  it('refuse requests from other sites', async () => {
    const headers = { 'Sec-Fetch-Site': 'cross-site' };
    expect(await readProblem(inConsole('GET', routes.listApiKeys.path, { headers }))).to.equal(
      '403 cross-site: This request came from another site.',
    );
    for (const site of ['same-origin', 'none'])
      expect((await inConsole('GET', routes.listApiKeys.path, { headers: { 'Sec-Fetch-Site': site } })).status).to.equal(200);
    const { origin } = new URL(harness.core.url);
    expect((await inConsole('GET', routes.listApiKeys.path, { headers: { Origin: origin } })).status).to.equal(200);
    expect((await inConsole('GET', routes.listApiKeys.path, { headers: { Origin: origin.replace('http', 'https') } })).status).to.equal(
      403,
    );
    // Fetch Metadata takes precedence over Origin.
    expect(
      (await inConsole('GET', routes.listApiKeys.path, { headers: { Origin: 'https://x.y', 'Sec-Fetch-Site': 'same-origin' } })).status,
    ).to.equal(200);
  });

  it('explain what is wrong with an Idempotency-Key', async () => {
    const wrong = (detail: string) => `422 invalid: Invalid Idempotency-Key header: ${detail}`;
    const form = wrong('Must be 1 to 128 characters from A-Z a-z 0-9 . _ ~ - and :, but not "." or "..", with or without double quotes.');
    for (const header of ['a b', '..', '"."', '"a', 'a"', 'x"a"', '"a"x', ''])
      expect(await readProblem(place(call(), { 'Idempotency-Key': header })), header).to.equal(form);
    const other = { ...JSON.parse(call()), requestId: 'r1' };
    const differs = wrong("Doesn't match requestId in the body. Send only one of them, or the same value in both.");
    expect(await readProblem(place(JSON.stringify(other), { 'Idempotency-Key': 'r2' }))).to.equal(differs);
    expect((await place(JSON.stringify(other), { 'Idempotency-Key': '"r1"' })).json['requestId']).to.equal('r1');
  });
});

describe('an outcome report', () => {
  const clock = fakeClock();
  let harness: CoreHarness;
  let calls = 0;

  before(async () => {
    const dialer = { DIALER: 'webhook', DIALER_URL: 'http://127.0.0.1:9/', DIALER_SECRETS: signingSecret };
    harness = await openCore({ clock, environment: dialer });
  });
  after(() => harness.close());

  const readState = async (contactId: string) =>
    (await harness.direct.storage.database.read('calls').where({ contact_id: contactId }).first())?.state;
  /** A call that the provider has. */
  const handedOff = async () => {
    const contactId = `call-${++calls}`;
    const { campaign, account } = harness.tenants;
    await harness.direct.storage.database.write('calls').insert({
      ...{ contact_id: contactId, request_id: contactId, campaign_id: campaign.id, account_id: account.id, api_key_id: 'key' },
      ...{ state: 'dialing', handoff: 'taken', provider: 'webhook', phone: somePhone() },
      ...{ placed_at: clock.now(), due_at: instant(clock.now() + 60_000) },
    });
    return contactId;
  };
  const report = (raw: string, { of = harness.core, signed = raw, headers = {} } = {}) =>
    ask('POST', of.url + routes.reportOutcome.path, {
      raw,
      headers: { ...sign('any', signed, signingSecret, Math.floor(clock.now() / 1_000)), ...headers },
    });
  const formatOutcome = (contactId: string) => JSON.stringify({ handoffId: contactId, state: 'busy' });

  it("is accepted if it's signed, and the response contains only its ID", async () => {
    const contactId = await handedOff();
    const answer = await report(formatOutcome(contactId), { headers: { 'X-Request-Id': 'r-1' } });
    expect([answer.status, answer.text, answer.headers['x-request-id']]).to.deep.equal([204, '', 'r-1']);
    expect(await readState(contactId)).to.equal('busy');
  });

  it("gets the common 401 unless it's signed and complete", async () => {
    const contactId = await handedOff();
    const raw = formatOutcome(contactId);
    const { text } = await ask('GET', `${harness.core.url}/nowhere`);
    for (const refused of [
      await report(raw, { signed: `${raw} ` }),
      await report(raw, { headers: { 'webhook-signature': '' } }),
      await report(raw.padEnd(65_537)),
    ])
      expect([refused.status, refused.text]).to.deep.equal([401, text]);
    expect(await readState(contactId)).to.equal('dialing');
  });

  it('gets a 404 for an unknown hand-off, so that the provider stops repeating it', async () => {
    const answer = await report(formatOutcome('none'));
    expect([answer.status, readCode(answer)]).to.deep.equal([404, 'not-found']);
  });

  it("gets a response that says what is wrong, but only if it's signed", async () => {
    const answer = await report('{"handoffId":"x","state":"ringing"}');
    expect([answer.status, readCode(answer)]).to.deep.equal([422, 'invalid']);
    expect(answer.json['detail']).to.match(/^Invalid body at state: /);
    expect((await report('{')).status).to.equal(400);
  });

  it("is refused by a core whose provider doesn't report outcomes", async () => {
    const contactId = await handedOff();
    const off = await startCoreHere(harness.database, { clock });
    const answer = await report(formatOutcome(contactId), { of: off });
    await off.close();
    expect([answer.status, await readState(contactId)]).to.deep.equal([401, 'dialing']);
  });
});

describe('an error thrown by a request', () => {
  const log: { msg: string; level: string; err?: object; requestId?: string; route?: string }[] = [];
  const lines = new Writable({
    write(chunk, _encoding, done) {
      log.push(JSON.parse(String(chunk)));
      done();
    },
  });
  let server: Server;
  let thrown: unknown;
  let notServed: ReturnType<typeof countNotServed>;

  before(async () => {
    const app = new Koa<State>().use(requestId()).use(problems({ onNotServed: (...thrown) => notServed.add(...thrown) }));
    app.use((ctx) => {
      ctx.state.route = '/a-route';
      ctx.set('X-Of-Another-Answer', 'x');
      throw thrown;
    });
    server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  beforeEach(() => {
    log.length = 0;
    notServed = countNotServed(createLog('info', lines));
  });
  after(() => server.close());

  const throwing = async (what: unknown, id = 'r-1') => {
    thrown = what;
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
    const response = await fetch(url, { headers: { 'X-Request-Id': id, Connection: 'close' } });
    const answer: unknown = await response.json();
    return { status: response.status, headers: response.headers, answer };
  };

  it('is returned as a problem, without anything from a response in progress', async () => {
    const { status, headers, answer } = await throwing(new Problem('too-large', 'Too much.'));
    expect([status, answer]).to.deep.equal([
      413,
      { type: 'urn:callkey:problems#too-large', title: 'Request body too large', status: 413, detail: 'Too much.' },
    ]);
    expect(Object.fromEntries(headers)).to.include({ 'x-request-id': 'r-1', 'x-content-type-options': 'nosniff' });
    for (const name of ['x-of-another-answer', 'retry-after', 'allow']) expect(headers.has(name), name).to.equal(false);
    expect(log).to.deep.equal([]);
  });

  it("is logged if the core couldn't serve the request, and the response says when to retry", async () => {
    const { status, headers } = await throwing(new Problem('unavailable', 'Down.', { retryAfter: 2 }));
    expect([status, headers.get('retry-after')]).to.deep.equal([503, '2']);
    expect(log).to.have.length(1);
    expect(log[0]).to.include({ level: 'warn', msg: 'request not served', requestId: 'r-1', route: '/a-route' });
    expect(log[0]?.err).to.include({ message: 'Down.' });
  });

  it("is only logged if it's a bug, and the response names the log entry", async () => {
    const { status, answer } = await throwing(new TypeError('a secret'));
    expect([status, answer]).to.deep.equal([
      500,
      {
        ...{ type: 'urn:callkey:problems#internal', title: 'Internal error', status: 500, instance: 'r-1' },
        detail: "Something went wrong on the server. The operator can find it in the log under this request's ID.",
      },
    ]);
    expect(log).to.have.length(1);
    expect(log[0]).to.include({ level: 'error', msg: 'request failed', requestId: 'r-1', route: '/a-route' });
    expect(log[0]?.err).to.include({ message: 'a secret' });
  });

  it('closes the connection without a response if the result is unknown', async () => {
    const failure: unknown = await throwing(new ResultUnknown(new Error('Connection terminated'))).catch((error: Error) => error.cause);
    expect(failure).to.include({ code: 'UND_ERR_SOCKET', message: 'other side closed' });
    expect(log).to.have.length(1);
    expect(log[0]).to.include({ level: 'warn', msg: 'request not answered', requestId: 'r-1', route: '/a-route' });
    expect(log[0]?.err).to.have.nested.property('cause.message', 'Connection terminated');
  });

  it('is logged once and then counted if many requests fail for the same reason', async () => {
    const away = () => throwing(new Problem('unavailable', 'Down.', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }));
    for (let times = 0; times < 3; times++) await away();
    await throwing(new Problem('unavailable', 'Late.'));
    const first = ['Down.', 'Late.'];
    expect(log.map(({ err }) => err && 'message' in err && err.message)).to.deep.equal(first);
    notServed.write();
    notServed.write();
    expect(log).to.have.length(3);
    expect(log[2]).to.include({ msg: 'request not served: more requests', route: '/a-route', code: 'ECONNREFUSED', count: 2 });
    await away();
    expect(log[3]).to.include({ msg: 'request not served', requestId: 'r-1' });
  });

  for (const id of ['x0190a0b0-0000-7000-8000-000000000000', '0190a0b0-0000-7000-8000-000000000000x']) {
    it(`has the request's ID ${id} unchanged, even if it isn't a UUID`, async () => {
      expect((await throwing(new Error('x'), id)).answer).to.include({ instance: id });
    });
  }

  it("becomes the common 401, without an X-Request-Id, if it's an authorization error", async () => {
    const { status, headers } = await throwing(new Problem('unauthorized', 'x'));
    expect(status).to.equal(401);
    expect(headers.has('x-request-id')).to.equal(false);
    expect(log).to.deep.equal([]);
    expect(Object.fromEntries(headers)).to.include({ 'www-authenticate': 'ApiKey realm="callkey"', 'x-content-type-options': 'nosniff' });
  });
});

describe('a request', () => {
  it('ends when its client hangs up, before or while its body is read', async () => {
    const early = new IncomingMessage(new Socket()).destroy();
    await once(early, 'close');
    const late = new IncomingMessage(new Socket());
    const failures = [early, late].map((req) => readBytes(req, 1_000).catch((error: unknown) => error));
    late.destroy(new Error('aborted'));
    for (const problem of await Promise.all(failures))
      expect(problem).to.include({ code: 'malformed-request', message: 'The request body is incomplete.' });
    expect(await failures[1]).to.have.nested.property('cause.message', 'aborted');
  });

  it('counts as secure over TLS, but over no other connection unless a proxy is trusted', () => {
    const app = new Koa<State>();
    const { isSecure } = clientAddress([], () => undefined);
    const secure = [new TLSSocket(new Socket()), new Socket()].map((socket) => {
      const req = new IncomingMessage(socket);
      const counts = isSecure(app.createContext(req, new ServerResponse(req)));
      socket.destroy();
      return counts;
    });
    expect(secure).to.deep.equal([true, false]);
  });
});
