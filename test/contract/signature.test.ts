import { expect } from 'chai';
import { isSigned, isSigningSecret, makeSigningSecret, type SignatureHeaders, sign } from '#contract/calls/signature.ts';

// This is the example from Standard Webhooks 1.0.0.
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const body = Buffer.from('{"test": 2432232314}');
const seconds = 1_614_265_330;
const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
const otherSecret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

const right = { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signature };
const isTaken = (changes: Partial<SignatureHeaders> = {}, { secrets = [secret], now = seconds, sent = body } = {}) =>
  isSigned((name) => ({ ...right, ...changes })[name], sent, secrets, now);

describe('a signature', () => {
  it('follows Standard Webhooks', () => {
    expect(sign(id, body, secret, seconds)).to.deep.equal(right);
    expect(sign(id, body.toString(), secret, seconds)).to.deep.equal(right);
  });

  it('is accepted from a sender with the secret', () => {
    expect(isTaken()).to.equal(true);
  });

  for (const [what, changes, now = seconds] of [
    ['a different ID', { 'webhook-id': `${id}x` }],
    ['an empty ID, even if signed', sign('', body, secret, seconds)],
    ['a different time', { 'webhook-timestamp': String(seconds + 1) }],
    ['no time', { 'webhook-timestamp': '' }],
    ["a time that isn't a number", sign(id, body, secret, Number.NaN)],
    ['a time with a sign', sign(id, body, secret, -5), -5],
    ['a time with a fraction', sign(id, body, secret, 0.5), 0.5],
    ['a time of 13 digits', sign(id, body, secret, seconds * 1_000), seconds * 1_000],
    ['no signature', { 'webhook-signature': '' }],
    ['a signature with an unknown version', { 'webhook-signature': signature.replace('v1', 'v2') }],
    ['half a signature', { 'webhook-signature': signature.slice(0, 23) }],
    ["another secret's signature", sign(id, body, otherSecret, seconds)],
  ] as [string, Partial<SignatureHeaders>, number?][]) {
    it(`is refused with ${what}`, () => {
      expect(isTaken(changes, { now })).to.equal(false);
    });
  }

  it('is refused with a different body', () => {
    expect(isTaken({}, { sent: Buffer.from('{"test": 2432232315}') })).to.equal(false);
  });

  it('is accepted up to five minutes before and after its time', () => {
    const taken = [-301, -300, 300, 301].map((late) => isTaken({}, { now: seconds + late }));
    expect(taken).to.deep.equal([false, true, true, false]);
  });

  it('can be one of several signatures, and match one of several secrets, so that a secret can be replaced', () => {
    expect(isTaken({ 'webhook-signature': `v1,AAAA v2,BBBB ${signature}` }, { secrets: [otherSecret, secret] })).to.equal(true);
    expect(isTaken({}, { secrets: [] })).to.equal(false);
  });
});

describe('a signing secret', () => {
  const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`;

  it('has 24 to 64 bytes, with either length of base64 padding', () => {
    expect([23, 24, 25, 26, 64, 65].filter((bytes) => isSigningSecret(of(bytes)))).to.deep.equal([24, 25, 26, 64]);
  });

  for (const [what, text] of [
    ['without its prefix', of(32).slice(6)],
    ['with another prefix', of(32).replace('whsec_', 'secret')],
    ["if it isn't base64", `whsec_${'!'.repeat(44)}`],
    ['with an extra character before it', of(33).replace('whsec_', 'whsec_ ')],
    ['with an extra character after it', `${of(33)} `],
    ['with truncated base64', of(33).slice(0, -1)],
    ['with incorrect padding', `${of(33)}==`],
    ['with three padding characters', `${of(33).slice(0, -3)}===`],
  ] as const) {
    it(`is invalid ${what}`, () => expect(isSigningSecret(text)).to.equal(false));
  }

  it('is generated from 32 random bytes', () => {
    expect(makeSigningSecret((size) => new Uint8Array(size).fill(1))).to.equal(of(32));
  });
});
