import { createServer } from 'node:http';
import { expect } from 'chai';
import Koa from 'koa';
import { Registry } from 'prom-client';
import { Problem, ResultUnknown } from '../../core/domain/problem.ts';
import { createManagementApp } from '../../core/http/management.ts';
import type { State } from '../../core/http/middleware/context.ts';
import { everyRequest } from '../../core/http/middleware/every-request.ts';
import { countNotServed } from '../../core/server/recorded-refusals.ts';
import { createLog } from '../../core/server/start/log.ts';
import { recordLog } from '../support/core.ts';
import { overSocket } from '../support/http.ts';
import { type Listening, listenHere } from '../support/listen.ts';

describe('an error thrown by a request', () => {
  const { log, lines } = recordLog();
  let server: Listening;
  let thrown: unknown;
  let notServed: ReturnType<typeof countNotServed>;

  before(async () => {
    const app = new Koa<State>().use(everyRequest({ onNotServed: (...thrown) => notServed.add(...thrown) }));
    app.use((ctx) => {
      ctx.state.route = '/a-route';
      ctx.set('X-Of-Another-Answer', 'x');
      throw thrown;
    });
    server = await listenHere(createServer(app.callback()));
  });
  beforeEach(() => {
    log.length = 0;
    notServed = countNotServed(createLog('info', lines));
  });
  after(() => server.close());

  const throwing = async (what: unknown, id = 'r-1') => {
    thrown = what;
    const response = await fetch(server.url, { headers: { 'X-Request-Id': id, Connection: 'close' } });
    const answer: unknown = await response.json();
    return { status: response.status, headers: response.headers, answer };
  };

  it('is returned as a problem, without the headers that the handler had already set', async () => {
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
    expect(log[0]?.['err']).to.include({ message: 'Down.' });
  });

  it("appears only in the log if it's a bug, and the response says how to find it there", async () => {
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
    expect(log[0]?.['err']).to.include({ message: 'a secret' });
  });

  it('is said to be in the log only if it has its own entry there, not if the log merely counts such errors', async () => {
    const logged: string[] = [];
    for (let n = 1; n <= 21; n++) {
      const { answer } = await throwing(new TypeError('x'), `r-${n}`);
      if (JSON.stringify(answer).includes("under this request's ID")) logged.push(`r-${n}`);
      expect(answer).to.include({ instance: `r-${n}` });
    }
    expect(logged).to.have.length(20);
    expect(log.map(({ requestId }) => requestId)).to.deep.equal(logged);
  });

  it('closes the connection without a response if the result is unknown', async () => {
    const failure: unknown = await throwing(new ResultUnknown(new Error('Connection terminated'))).catch((error: Error) => error.cause);
    expect(failure).to.include({ code: 'UND_ERR_SOCKET', message: 'other side closed' });
    expect(log).to.have.length(1);
    expect(log[0]).to.include({ level: 'warn', msg: 'request not answered', requestId: 'r-1', route: '/a-route' });
    expect(log[0]?.['err']).to.have.nested.property('cause.message', 'Connection terminated');
  });

  it('is logged once and then counted if many requests fail for the same reason', async () => {
    const away = () => throwing(new Problem('unavailable', 'Down.', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }));
    for (let times = 0; times < 3; times++) await away();
    await throwing(new Problem('unavailable', 'Late.'));
    expect(log).to.have.length(2);
    for (const [n, message] of ['Down.', 'Late.'].entries()) expect(log[n]?.['err']).to.include({ message });
    notServed.write();
    notServed.write();
    expect(log).to.have.length(3);
    expect(log[2]).to.include({ msg: 'request not served: more requests', route: '/a-route', code: 'ECONNREFUSED', count: 2 });
    await away();
    expect(log[3]).to.include({ msg: 'request not served', requestId: 'r-1' });
  });

  it("is returned with the request's ID unchanged, even if that only looks like a UUID", async () => {
    for (const id of ['x0190a0b0-0000-7000-8000-000000000000', '0190a0b0-0000-7000-8000-000000000000x'])
      expect((await throwing(new Error('x'), id)).answer).to.include({ instance: id });
  });

  it("becomes the common 401, without an X-Request-Id, if it's an authorization error", async () => {
    const { status, headers } = await throwing(new Problem('unauthorized', 'x'));
    expect(status).to.equal(401);
    expect(headers.has('x-request-id')).to.equal(false);
    expect(log).to.deep.equal([]);
    expect(Object.fromEntries(headers)).to.include({ 'www-authenticate': 'ApiKey realm="callkey"', 'x-content-type-options': 'nosniff' });
  });
});

describe('an error response of the management listener', () => {
  const { log, lines } = recordLog();
  let server: Listening;

  before(async () => {
    const registry = new Registry();
    registry.metrics = () => Promise.reject(new TypeError('a secret'));
    const deps = { version: '', registry, isReady: async () => false, isClockAhead: () => false, log: createLog('info', lines) };
    const app = createManagementApp({ ...deps, host: '127.0.0.1' });
    server = await listenHere(createServer({ requireHostHeader: false }, app.callback()));
  });
  beforeEach(() => {
    log.length = 0;
  });
  after(() => server.close());

  for (const [what, line, host, status, code, header] of [
    ['for a missing Host', 'GET /healthz', null, 400, 'malformed-request', ''],
    ['for an unknown path', 'GET /nowhere', 'localhost', 404, 'not-found', ''],
    ["for a URL that can't be parsed", 'GET http://[::1', 'localhost', 400, 'malformed-request', ''],
    ['for another method', 'POST /healthz', 'localhost', 405, 'method-not-allowed', 'Allow: GET, HEAD'],
    ['for an unknown name', 'GET /healthz', 'evil.example', 421, 'malformed-request', ''],
    ["for a core that isn't ready", 'GET /readyz', 'localhost', 503, 'unavailable', 'Retry-After: 2'],
    ['for a bug', 'GET /metrics', 'localhost', 500, 'internal', ''],
  ] as const) {
    it(`${what} is a problem with the request's ID`, async () => {
      const headers = [...(host === null ? [] : [`Host: ${host}`]), 'X-Request-Id: r-1', 'Connection: close'];
      const [head = '', body = ''] = (await overSocket(server.url, [`${line} HTTP/1.1`, ...headers, '', ''].join('\r\n'))).split(
        '\r\n\r\n',
      );
      const lines = head.split('\r\n');
      expect(lines[0]).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(lines).to.include.members(['Content-Type: application/problem+json', 'X-Request-Id: r-1', ...(header === '' ? [] : [header])]);
      expect(JSON.parse(body)).to.include({ type: `urn:callkey:problems#${code}`, status });
      expect(body).not.to.contain('a secret');
      expect(log.map((entry) => entry['requestId'])).to.deep.equal(status === 500 ? ['r-1'] : []);
    });
  }
});
