import { expect } from 'chai';
import { z } from 'zod';
import { sessionRoutes } from '#contract/console/session.ts';
import type { ProblemCode } from '#contract/problems.ts';
import { findFailure, requestFunctions, type Send, signInAt, withTenancyHeader } from '../../../desktop/core-requests.ts';
import type { Failure } from '../../../desktop/ipc.ts';

const refused = (code: ProblemCode, retryAfterSeconds: number | null = null): Failure => ({
  ...{ kind: 'refused', code, detail: 'Not now.', errors: [], retryAfterSeconds },
});
const ignore = () => undefined;
const functions = (send: Send) =>
  requestFunctions({ send, guard: { begin: ignore, show: ignore, end: async () => undefined }, sha256: async (text) => text });
const none: Send = () => Promise.reject(new Error('Nothing should be sent.'));

const session = {
  viewer: { id: 'u1', name: 'Sam Staff', email: 'sam@example.com', userType: 'staff', account: null, partner: null },
  ...{ tenancy: null, secondFactor: false, dialer: 'off', reference: true, version: '0.9.0' },
};
/** Refuses every code in a session that hasn't ended. */
const wrongCode: Send = async ({ path, schema }) =>
  path === '/console/session' ? { ok: true, value: schema.parse(session) } : { ok: false, failure: { kind: 'session-ended' } };

describe('a request of the console', () => {
  it('says whether a key value has a wrong character, or the wrong length', async () => {
    for (const [length, message] of [
      [49, /^At least one character of this key value is wrong/],
      [48, /Paste the whole value\.$/],
    ] as const)
      expect(await functions(none).identifyApiKey(`svc_sk_live_${'a'.repeat(length)}`))
        .to.have.nested.property('failure.detail')
        .that.matches(message);
  });

  it("doesn't suggest a recovery code before there are any", async () => {
    const { request } = functions(wrongCode);
    expect(await request('confirmSecondFactor', { code: '000000' }))
      .to.have.nested.property('failure.detail')
      .that.equals('This code isn’t valid. Enter the current code from your app.');
    expect(await request('removeSecondFactor', { code: '000000' }))
      .to.have.nested.property('failure.detail')
      .that.contains('another recovery code');
  });
});

describe('a response of a server that isn’t a core', () => {
  const loginForm = '<!doctype html><form><input name="user"><input type="password" name="pass"></form>';
  const problem = '{"type":"urn:other#unauthorized","title":"x","status":401,"detail":"x"}';
  const asksItself = 'A proxy or another kind of server responded (401) and requires its own sign-in.';
  const strangers: readonly (readonly [name: string, status: number, headers: Record<string, string>, text: string, says: string])[] = [
    ['a router', 200, { 'content-type': 'text/html' }, '<h1>Router</h1>', 'A web page responded instead of a Callkey server.'],
    ['a JSON service', 200, { 'content-type': 'application/json' }, '{"password":true,"oidc":null}', 'This isn’t a Callkey server'],
    ['a login wall', 200, { 'content-type': 'text/html' }, loginForm, 'A sign-in page responded instead of a Callkey server.'],
    ['a login wall that asks with 401', 401, { 'www-authenticate': 'Basic' }, '', asksItself],
    ['a problem of another product', 401, { 'content-type': 'application/problem+json' }, problem, asksItself],
    ['a maintenance page', 503, {}, '<h1>Back soon</h1>', 'The proxy in front of the server returned 503.'],
    ['a captive portal', 302, { location: 'https://a.example/login?from=secret' }, '', 'The server redirects to https://a.example. If'],
    ['a website without this path', 404, {}, '<h1>Not found</h1>', 'There’s no Callkey server at this address (404).'],
    ['a port with TLS', 400, {}, 'The plain HTTP request was sent to HTTPS port', 'This port requires HTTPS.'],
  ];
  for (const [name, status, headers, text, says] of strangers) {
    it(`is recognized as that of ${name}, and the message says what to do`, () => {
      expect(findFailure({ status, header: (each) => headers[each], text }))
        .to.have.nested.property('failure.detail')
        .that.satisfies((detail: string) => detail.startsWith(says));
    });
  }
});

describe("a core's problem", () => {
  it('is shown in its own words, with the ID of the request if the core gives it', () => {
    const problem = { type: 'urn:callkey:problems#internal', title: 'Internal error', status: 500, detail: 'Something went wrong.' };
    const header = (name: string) => (name === 'content-type' ? 'application/problem+json' : undefined);
    const read = (body: object) => findFailure({ status: 500, header, text: JSON.stringify(body) });
    expect(read(problem)).to.have.nested.property('failure.detail', 'Something went wrong.');
    expect(read({ ...problem, instance: 'abc-1' })).to.have.nested.property('failure.detail', 'Something went wrong. (abc-1)');
  });
});

describe('signing in', () => {
  const busy = (retryAfterSeconds: number | null) => refused('too-many-requests', retryAfterSeconds);

  /** Tries to sign in while the core gives these responses in order. @returns the number of attempts, and the result of the last one */
  async function attempts(...answers: Failure[]) {
    let count = 0;
    const send = async () => ({ ok: false as const, failure: answers[count++] ?? { kind: 'session-ended' as const } });
    const result = await signInAt(send, { server: '', email: 'ada@example.com', password: 'p', keepSignedIn: null });
    return { count, failure: result.ok ? null : result.failure };
  }

  it('is retried if too many other users are signing in', async () => {
    const { count, failure } = await attempts(busy(0.01), busy(0.01));
    expect([count, failure?.kind === 'refused' && failure.code]).to.deep.equal([3, 'invalid']);
  });

  it("isn't retried if the wait would be long or is unknown", async () => {
    expect(await attempts(busy(900))).to.deep.equal({ count: 1, failure: busy(900) });
    expect(await attempts(busy(null))).to.deep.equal({ count: 1, failure: busy(null) });
    expect((await attempts({ kind: 'unreachable', detail: '' })).count).to.equal(1);
  });
});

describe('a refused request about the session, in a tenancy', () => {
  /** @returns the headers of each request that was sent */
  async function listSent(code: ProblemCode): Promise<object[]> {
    const sent: object[] = [];
    const { send, setTenancy } = withTenancyHeader(async (_request, headers) => {
      sent.push(headers);
      return { ok: false, failure: refused(code) };
    });
    setTenancy({ kind: 'account', id: 'blue' });
    const { method, path } = sessionRoutes.showSession;
    await send({ method, path, schema: z.unknown() });
    return sent;
  }

  it('is repeated without the tenancy if the user has no access to it', async () => {
    expect(await listSent('forbidden')).to.deep.equal([{ 'Callkey-Tenancy': 'account/blue' }, {}]);
  });

  it("isn't repeated after a failure that says nothing about the tenancy", async () => {
    expect(await listSent('unavailable')).to.deep.equal([{ 'Callkey-Tenancy': 'account/blue' }]);
  });
});
