import { expect } from 'chai';
import { findFailure, requestFunctions, type Send } from '../../../desktop/core-requests.ts';

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
