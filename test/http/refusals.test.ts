import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { fakeClock } from '../support/clock.ts';
import { openCore } from '../support/core.ts';
import { ask, overSocket } from '../support/http.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

const onDemandPath = '/api/v1/campaigns/{id}/contacts/on-demand';

type Sent = { method?: string; path: string; headers?: string[]; body?: string };

describe('refusals', () => {
  const clock = fakeClock('2026-11-21T09:00:00.000Z');
  const its = openOnce(() => openCore({ clock }));
  let endpoint: string;
  let good: string;
  /** Those that are empty here are created before the tests. */
  const keys = new Map([
    ['a revoked key', ''],
    ['an expired key', ''],
    ['a key whose creator was deleted', ''],
    ['a mistyped key', ''],
    ['a key in lowercase', ''],
    ['an unknown key', makeKeyValue(randomBytes)],
    ['an empty key', ''],
    ['a malformed key', 'svc_sk_live_nonsense'],
    ['a key of another kind', 'Bearer abc'],
  ]);

  before(async () => {
    endpoint = onDemandPath.replace('{id}', its.tenants.campaign.id);
    const cookie = await signIn(its.core.url, 'ada@example.com');
    good = (await createKey(its.core.url, cookie)).keyValue;

    const revoked = await createKey(its.core.url, cookie);
    await ask('DELETE', `${its.core.url}/console/api-keys/${revoked.id}`, { cookie });
    const expiring = await createKey(its.core.url, cookie, 'Short', { kind: 'custom', date: '2026-11-22' });
    const orphan = await createKey(its.core.url, await signIn(its.core.url, 'tom@example.com'));
    await deleteUser(its.direct.ports, operator, its.tenants.users.teammate, false);
    keys.set('a revoked key', revoked.keyValue);
    keys.set('an expired key', expiring.keyValue);
    keys.set('a key whose creator was deleted', orphan.keyValue);
    keys.set('a mistyped key', good.slice(0, -1) + (good.endsWith('0') ? '1' : '0'));
    keys.set('a key in lowercase', good.toLowerCase());
    // This is after the last day of the short-lived key, but within the session's limits.
    clock.set('2026-11-23T00:00:00.000Z');
  });

  const send = ({ method = 'POST', path, headers = [], body }: Sent) =>
    overSocket(
      its.core.url,
      [
        `${method} ${path} HTTP/1.1`,
        'Host: localhost',
        'Connection: close',
        ...headers,
        ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
        '',
        body ?? '',
      ].join('\r\n'),
    );
  const contact = JSON.stringify({ contact: { phone: '+493012345678' } });
  const reference = () => send({ path: '/nowhere' });

  it('are the same for a key that was in use until it was revoked, even on a path with invalid encoding', async () => {
    const cookie = await signIn(its.core.url, 'ada@example.com');
    const { id, keyValue } = await createKey(its.core.url, cookie);
    expect((await placeCall(its.core.url, its.tenants.campaign.id, keyValue)).status).to.equal(202);
    await ask('DELETE', `${its.core.url}/console/api-keys/${id}`, { cookie });
    const path = `${endpoint}/%zz`;
    expect(await send({ method: 'DELETE', path, headers: [`X-API-Key: ${keyValue}`] })).to.equal(await reference());
  });

  it('have all the headers and fields that a 401 requires', async () => {
    const text = await reference();
    expect(text).to.match(/^HTTP\/1\.1 401 Unauthorized\r\n/);
    expect(text).to.match(/^WWW-Authenticate: /m);
    expect(text).to.match(/^Content-Type: application\/problem\+json\r$/m);
    expect(text).to.match(/^Cache-Control: no-store\r$/m);
    const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n')));
    expect(body).to.include({ status: 401 });
    expect(body.type).to.match(/#unauthorized$/);
  });

  describe("are byte for byte the same for every key that isn't accepted:", () => {
    for (const which of keys.keys()) {
      for (const [what, path, method, body] of [
        ['when placing a call', '', 'POST', contact],
        ['when placing a call with an invalid body', '', 'POST', '{'],
        ['when placing a call without a body', '', 'POST', undefined],
        ['when placing a call with a body that is too large', '', 'POST', JSON.stringify('x'.repeat(70_000))],
        ['when cancelling a call', '/some-contact', 'DELETE', undefined],
        ['when cancelling a call by request ID', '/by-request-id/some-request', 'DELETE', undefined],
        ['in a request with bad percent-encoding', '/%zz', 'DELETE', undefined],
      ] as const) {
        it(`${which}, ${what}`, async () => {
          const answer = await send({
            method,
            path: endpoint + path,
            headers: [`X-API-Key: ${keys.get(which)}`],
            ...(body === undefined ? {} : { body }),
          });
          expect(answer).to.equal(await reference());
        });
      }
    }

    it('a missing key', async () => {
      expect(await send({ path: endpoint, body: contact })).to.equal(await reference());
    });

    it('a valid key sent twice', async () => {
      expect(await send({ path: endpoint, body: contact, headers: [`X-API-Key: ${good}`, `X-API-Key: ${good}`] })).to.equal(
        await reference(),
      );
    });

    it('a valid key in the wrong place', async () => {
      expect(await send({ path: `${endpoint}?key=${good}`, body: contact, headers: [`Authorization: Bearer ${good}`] })).to.equal(
        await reference(),
      );
    });

    it('an unknown key for another campaign', async () => {
      const path = '/api/v1/campaigns/no-such/contacts/on-demand';
      expect(await send({ path, body: contact, headers: [`X-API-Key: ${keys.get('an unknown key')}`] })).to.equal(await reference());
    });
  });

  describe('are byte for byte the same for everything except the three endpoints, even with a valid key:', () => {
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/favicon.ico'],
      ...(['GET', 'PUT', 'PATCH', 'OPTIONS', 'DELETE', 'CONNECT'] as const).map((method) => [method, onDemandPath] as const),
      ['POST', `${onDemandPath}/`],
      ['POST', '/API/V1/CAMPAIGNS/{id}/CONTACTS/ON-DEMAND'],
      ['POST', `${onDemandPath}/some-contact`],
      ['GET', `${onDemandPath}/some-contact`],
      ['DELETE', `${onDemandPath}/by-request-id/a/b`],
      ['POST', onDemandPath.replace('v1', 'v2')],
      ['GET', '/console/session'],
      ['POST', '/console/session'],
      ['POST', '/console/session/second-factor'],
      ['GET', '/console/sign-in'],
      ['POST', '/console/oidc/session'],
      ['GET', '/console/api-keys'],
      ['POST', '/console/api-keys'],
      ['DELETE', '/console/api-keys/some-key'],
      ['GET', '/console/campaigns'],
      ['GET', '/healthz'],
      ['GET', '/metrics'],
      ['GET', '/%zz'],
      ['GET', '//'],
      ['GET', `http://localhost${onDemandPath}`],
      ['GET', 'http://[::1'],
      ['GET', 'http://localhost:port/'],
      ['PROPFIND', '/'],
      ['CONNECT', 'localhost:443'],
      ['CONNECT', '/'],
    ] as const) {
      it(`${method} ${path}`, async () => {
        expect(await send({ method, path: path.replace('{id}', its.tenants.campaign.id), headers: [`X-API-Key: ${good}`] })).to.equal(
          await reference(),
        );
      });
    }

    it('a request to switch protocols', async () => {
      const headers = ['Connection: Upgrade', 'Upgrade: websocket', `X-API-Key: ${good}`];
      expect(await send({ method: 'GET', path: endpoint, headers })).to.equal(await reference());
    });

    it('a CONNECT request, with data after it', async () => {
      const answer = await overSocket(its.core.url, 'CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n\x16\x03\x01 and so on');
      expect(answer).to.equal(await reference());
    });

    it('a CONNECT request sent before the responses to earlier requests', async () => {
      const session = 'GET /console/session HTTP/1.1\r\nHost: localhost\r\n\r\n';
      const answers = await overSocket(its.core.url, `${session}${session}CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      expect(answers.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 401', 'HTTP/1.1 401', 'HTTP/1.1 401']);
    });

    for (const [what, method, headers] of [
      ['an invalid cookie', 'GET', ['Cookie: callkey_session=nonsense; callkey_session.sig=nonsense']],
      ['the origin of another site', 'DELETE', ['Sec-Fetch-Site: cross-site', 'Origin: https://evil.example']],
    ] as const)
      it(`a request with ${what}`, async () => {
        expect(await send({ method, path: '/console/session', headers: [...headers] })).to.equal(await reference());
      });
  });

  it('have the same headers, but no body, for HEAD', async () => {
    const head = await send({ method: 'HEAD', path: endpoint, headers: [`X-API-Key: ${good}`] });
    expect(head).to.equal((await reference()).replace(/(?<=\r\n\r\n).*/s, ''));
  });

  it('are the same for a wrong password and a missing user', async () => {
    for (const email of ['ada@example.com', 'nobody@example.com']) {
      const body = JSON.stringify({ email, password: 'wrong' });
      expect(await send({ path: '/console/session', body }), email).to.equal(await reference());
    }
  });

  it("aren't changed by a session cookie on the three endpoints", async () => {
    const cookie = await signIn(its.core.url, 'pat@example.com');
    expect(await send({ path: endpoint, body: contact, headers: [`Cookie: ${cookie}`] })).to.equal(await reference());
    expect((await placeCall(its.core.url, its.tenants.campaign.id, good)).status).to.equal(202);
  });
});
