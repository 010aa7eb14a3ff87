import { expect } from 'chai';
import { requestFunctions, type Send } from '../../../desktop/core-requests.ts';

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
