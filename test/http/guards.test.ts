import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { expect } from 'chai';
import Koa from 'koa';
import { pathTo } from '#contract/route.ts';
import { consoleRoutes, routes } from '#contract/routes.ts';
import { readBytes } from '../../core/http/middleware/body.ts';
import type { State } from '../../core/http/middleware/context.ts';
import { clientAddress } from '../../core/http/middleware/every-request.ts';
import { openCore } from '../support/core.ts';
import { type Ask, ask, overSocket, readCode } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, onDemand, signIn, somePhone } from '../support/tenants.ts';

describe('the checks for every route', () => {
  const harness = openOnce(() => openCore());
  let cookie: string;
  let key: string;
  let endpoint: string;

  before(async () => {
    cookie = await signIn(harness.core.url, 'ada@example.com');
    key = (await createKey(harness.core.url, cookie)).keyValue;
    endpoint = onDemand(harness.core.url, harness.tenants.campaign.id);
  });

  const call = () => JSON.stringify({ contact: { phone: somePhone() } });
  const place = (raw: string | Buffer, headers: Record<string, string> = {}) => ask('POST', endpoint, { key, raw, headers });
  /** Returns a problem as its caller sees it. */
  const readProblem = async (asking: ReturnType<typeof ask>) => {
    const answer = await asking;
    return `${answer.status} ${readCode(answer)}: ${answer.json['detail']}`;
  };
  const inConsole = (method: string, path: string, more: Ask = {}) => ask(method, harness.core.url + path, { cookie, ...more });

  for (const type of [
    'application/json',
    'APPLICATION/JSON; v=1',
    'application/json; charset="UTF-8"',
    "application/json; a=b; charset='utf8'",
    'application/json; charset=US-ASCII',
  ]) {
    it(`accept a body with the type ${type}`, async () => {
      expect((await place(call(), { 'Content-Type': type })).status).to.equal(202);
    });
  }

  for (const type of [
    '',
    'text/plain',
    'application/json; charset=latin1',
    'application/json; charset=utf-8x',
    'application/json; charset=xutf-8',
  ]) {
    it(`refuse a body with the type ${JSON.stringify(type)}`, async () => {
      const refusal = '415 unsupported-media-type: Send UTF-8 JSON with Content-Type: application/json.';
      expect(await readProblem(place(call(), { 'Content-Type': type }))).to.equal(refusal);
    });
  }

  it('accept only uncompressed bodies', async () => {
    for (const encoding of ['identity', 'Identity']) expect((await place(call(), { 'Content-Encoding': encoding })).status).to.equal(202);
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

  it("name a body's first error in the message, and list at most fifty errors", async () => {
    const phone = 'Must be a phone number in E.164 format, such as +493012345678.';
    expect(await readProblem(place('{"contact":{"phone":"1"}}'))).to.equal(`422 invalid: Invalid body at contact.phone: ${phone}`);
    expect(await readProblem(place('[]'))).to.match(/^422 invalid: Invalid body: \S/);
    const unknown = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`f${n}`, 1]));
    expect((await place(JSON.stringify({ ...JSON.parse(call()), ...unknown }))).json['errors']).to.have.length(50);
  });

  it('name the error in a query, and ignore empty parameters', async () => {
    const calls = pathTo(routes.listCalls, { id: harness.tenants.campaign.id });
    expect(await readProblem(inConsole('GET', `${calls}?state=ringing`))).to.match(
      /^400 malformed-request: Invalid state: Must be one of queued, /,
    );
    expect(await readProblem(inConsole('GET', `${calls}?searhc=x`))).to.equal('400 malformed-request: Invalid searhc: Unknown field.');
    const cursor = '400 malformed-request: Invalid cursor: Must be the nextCursor from the previous page.';
    expect(await readProblem(inConsole('GET', `${calls}?cursor=x`))).to.equal(cursor);
    expect(await readProblem(inConsole('GET', `${calls}?search=a&search=b`))).to.equal(
      '400 malformed-request: Invalid search: Must be a single string, not several.',
    );
    expect(await readProblem(inConsole('GET', `${calls}?searhc=a&searhc=b`))).to.contain('searhc: Unknown field.');
    expect(await readProblem(inConsole('GET', `${calls}?state=queued&state=ringing`))).to.contain('Must be one of queued, ');
    expect((await inConsole('GET', `${calls}?state=queued&state=failed`)).status).to.equal(200);
    expect((await inConsole('GET', `${calls}?state=&search=`)).status).to.equal(200);
  });

  it('refuse query parameters if the route has none', async () => {
    const { path } = routes.listApiKeys;
    expect(await readProblem(inConsole('GET', `${path}?search=x`))).to.equal('400 malformed-request: Invalid search: Unknown field.');
    expect((await inConsole('GET', `${path}?search=`)).status).to.equal(200);
    const stop = inConsole('POST', `${routes.stopDialing.path}?cancelQueuedCalls=true`, { body: { scope: 'server' } });
    expect(await readProblem(stop)).to.equal('400 malformed-request: Invalid cancelQueuedCalls: Unknown field.');
  });

  it('tell a signed-in user what is wrong with a URL', async () => {
    expect(await readProblem(inConsole('GET', '/nowhere'))).to.equal('404 not-found: Nothing exists at this path.');
    expect(await readProblem(inConsole('GET', '/console/%zz'))).to.equal('400 malformed-request: The URL has invalid percent-encoding.');
    expect(await readProblem(inConsole('GET', '/console/users?a=%zz'))).to.equal(
      '400 malformed-request: The URL has invalid percent-encoding.',
    );
    const wrongMethod = inConsole('PUT', routes.listApiKeys.path);
    expect([await readProblem(wrongMethod), (await wrongMethod).headers['allow']]).to.deep.equal([
      '405 method-not-allowed: Allowed methods: HEAD, GET, POST.',
      'HEAD, GET, POST',
    ]);
    // Other methods than POST aren't those of a key with this ID.
    for (const method of ['GET', 'PATCH', 'DELETE', 'PUT']) {
      const onIdentify = await inConsole(method, routes.identifyApiKey.path);
      expect([onIdentify.status, onIdentify.headers['allow']]).to.deep.equal([405, 'POST']);
    }
  });

  it('accept the URL of a route in any form that HTTP allows', async () => {
    expect((await ask('POST', `${endpoint}?a=b`, { key, raw: call() })).status).to.equal(202);
    const head = (target: string) => `POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: ${key}\r\n`;
    const body = call();
    const more = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    expect(await overSocket(harness.core.url, head(`${endpoint}?a=b`) + more)).to.match(/^HTTP\/1\.1 202 /);
    expect(await overSocket(harness.core.url, head(`x${new URL(endpoint).pathname}`) + more)).to.match(/^HTTP\/1\.1 40\d /);
  });

  it('return a problem for an HTTP/1.1 request without a valid Host, or with several, whatever its credentials and path', async () => {
    const send = (line: string, ...headers: string[]) =>
      overSocket(harness.core.url, [line, 'X-Request-Id: r-1', 'Connection: close', ...headers, '', ''].join('\r\n'));
    const place = `POST ${new URL(endpoint).pathname} HTTP/1.1`;
    const show = `GET ${routes.showSession.path} HTTP/1.1`;
    const answers = [await send('GET /nowhere HTTP/1.1'), await send(place, `X-API-Key: ${key}`), await send(show, `Cookie: ${cookie}`)];
    const [head = '', body = ''] = (answers[0] ?? '').split('\r\n\r\n');
    expect(head).to.match(/^HTTP\/1\.1 400 .*^Content-Type: application\/problem\+json\r$.*^X-Request-Id: r-1\r$/ms);
    expect(JSON.parse(body)).to.deep.equal({
      ...{ type: 'urn:callkey:problems#malformed-request', title: 'Malformed request', status: 400 },
      detail: 'The request has no Host header.',
    });
    expect(new Set(answers).size).to.equal(1);
    for (const [line, credential] of [
      [place, `X-API-Key: ${key}`],
      [show, `Cookie: ${cookie}`],
      ['GET /readyz HTTP/1.1', 'Accept: */*'],
    ] as const)
      for (const second of ['Host: x', 'hOST: y'])
        expect(await send(line, 'Host: x', credential, second)).to.match(
          /^HTTP\/1\.1 400 .*"detail":"The request has several Host headers\."/s,
        );
    expect(await send(show.replace('1.1', '1.0'), `Cookie: ${cookie}`)).to.match(/^HTTP\/1\.1 200 /);
    for (const host of ['a b', 'a/b', 'u@a', 'a, b', 'a:b', 'a:80:80', '[::1', '"a"', 'a?', 'münchen.example'])
      expect([host, await send(show, `Host: ${host}`, `Cookie: ${cookie}`)].join(' ')).to.match(/ 400 .*"The Host header isn't valid\."/s);
    for (const host of ['', 'a:', 'A_b.example:80', '[::1]:8080', '127.0.0.1', 'a%20b'])
      expect([host, await send(show, `Host: ${host}`, `Cookie: ${cookie}`)].join(' ')).to.match(/ 200 /);
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

  it('refuse requests from other sites', async () => {
    const list = (headers: Record<string, string>) => inConsole('GET', routes.listApiKeys.path, { headers });
    expect(await readProblem(list({ 'Sec-Fetch-Site': 'cross-site' }))).to.equal('403 cross-site: This request came from another site.');
    const { origin } = new URL(harness.core.url);
    // Fetch Metadata overrides Origin. Origins are compared as parsed, not as text.
    for (const [headers, status] of [
      [{ 'Sec-Fetch-Site': 'same-site' }, 403],
      [{ 'Sec-Fetch-Site': 'same-origin', Origin: 'https://x.y' }, 200],
      [{ 'Sec-Fetch-Site': 'none' }, 200],
      [{ Origin: origin }, 200],
      [{ Origin: origin.replace('http', 'https') }, 403],
      [{ Host: 'x:80', Origin: 'http://x' }, 200],
      [{ Host: 'x', Origin: 'http://x:80' }, 200],
      [{ Host: 'X.example:8080', Origin: 'HTTP://x.EXAMPLE:8080' }, 200],
      [{ Host: '[::1]:80', Origin: 'http://[0:0::1]' }, 200],
      [{ Host: 'x:8080', Origin: 'http://x' }, 403],
      [{ Host: 'x', Origin: 'https://x' }, 403],
      [{ Host: 'x', Origin: 'null' }, 403],
      [{ Host: '%2', Origin: 'http://%2' }, 403],
    ] as const)
      expect({ headers, status: (await list(headers)).status }).to.deep.equal({ headers, status });
  });

  it("refuse requests from other sites on every route, except on the identity provider's", async () => {
    for (const { method, path } of Object.values(consoleRoutes)) {
      if (path.startsWith('/console/oidc')) continue;
      const answer = await inConsole(method, path.replaceAll(/:\w+/g, 'x'), { headers: { 'Sec-Fetch-Site': 'cross-site' } });
      expect(readCode(answer), `${method} ${path}`).to.equal('cross-site');
    }
  });

  it('accept an Idempotency-Key, bare or quoted, or explain what is wrong with it', async () => {
    const wrong = (detail: string) => `422 invalid: Invalid Idempotency-Key header: ${detail}`;
    const form = wrong('Must be 1 to 128 characters from A-Z a-z 0-9 . _ ~ - and :, but not "." or "..", with or without double quotes.');
    for (const header of ['a b', '..', '"."', '"a', 'a"', 'x"a"', '"a"x', ''])
      expect(await readProblem(place(call(), { 'Idempotency-Key': header })), header).to.equal(form);
    const { json } = await place(call(), { 'Idempotency-Key': '..' });
    expect(json).to.have.nested.property('errors[0].path', 'Idempotency-Key');
    const other = { ...JSON.parse(call()), requestId: 'r1' };
    const differs = wrong("Doesn't match requestId in the body. Send only one of them, or the same value in both.");
    expect(await readProblem(place(JSON.stringify(other), { 'Idempotency-Key': 'r2' }))).to.equal(differs);
    const bare = await place(JSON.stringify(other), { 'Idempotency-Key': 'r1' });
    const quoted = await place(JSON.stringify({ ...other, requestId: undefined }), { 'Idempotency-Key': '"r1"' });
    expect([bare.status, bare.json['requestId']]).to.deep.equal([202, 'r1']);
    expect([quoted.status, quoted.headers['idempotent-replayed'], quoted.text]).to.deep.equal([202, 'true', bare.text]);
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

  it('counts as secure only over TLS if no proxy is trusted', () => {
    const app = new Koa<State>();
    const { isSecure } = clientAddress([], () => undefined);
    const secure = [new TLSSocket(new Socket()), new Socket()].map((socket) => {
      const req = new IncomingMessage(socket);
      req.headers['x-forwarded-proto'] = 'https';
      const counts = isSecure(app.createContext(req, new ServerResponse(req)));
      socket.destroy();
      return counts;
    });
    expect(secure).to.deep.equal([true, false]);
  });
});
