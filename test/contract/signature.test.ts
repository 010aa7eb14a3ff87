import { expect } from 'chai';
import { isSigned, isSigningSecret, makeSigningSecret, type SignatureHeaders, sign } from '#contract/calls/signature.ts';

// The example of Standard Webhooks 1.0.0.
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
  it('is that of Standard Webhooks', () => {
    expect(sign(id, body, secret, seconds)).to.deep.equal(right);
    expect(sign(id, body.toString(), secret, seconds)).to.deep.equal(right);
  });

  it('is taken from the one who has the secret', () => {
    expect(isTaken()).to.equal(true);
  });

  for (const [what, changes, now = seconds] of [
    ['another id', { 'webhook-id': `${id}x` }],
    ['no id, though it is signed', sign('', body, secret, seconds)],
    ['another time', { 'webhook-timestamp': String(seconds + 1) }],
    ['no time', { 'webhook-timestamp': '' }],
    ['a time that is no number', sign(id, body, secret, Number.NaN)],
    ['a time with a sign', sign(id, body, secret, -5), -5],
    ['a time with a fraction', sign(id, body, secret, 0.5), 0.5],
    ['no signature', { 'webhook-signature': '' }],
    ['a signature of another version', { 'webhook-signature': signature.replace('v1', 'v2') }],
    ['half a signature', { 'webhook-signature': signature.slice(0, 23) }],
    ['the signature of another secret', sign(id, body, otherSecret, seconds)],
  ] as [string, Partial<SignatureHeaders>, number?][]) {
    it(`is refused with ${what}`, () => {
      expect(isTaken(changes, { now })).to.equal(false);
    });
  }

  for (const time of [`x${seconds}`, `${seconds}x`, `${'0'.repeat(3)}${seconds}`]) {
    it(`is refused where ${time} is given as the time`, () => {
      const signed = { ...sign(id, body, secret, seconds), 'webhook-timestamp': time };
      expect(isTaken(signed)).to.equal(false);
    });
  }

  it('is refused with another body', () => {
    expect(isTaken({}, { sent: Buffer.from('{"test": 2432232315}') })).to.equal(false);
  });

  it('is taken for five minutes before its time and after it', () => {
    const taken = [-301, -300, 300, 301].map((late) => isTaken({}, { now: seconds + late }));
    expect(taken).to.deep.equal([false, true, true, false]);
  });

  it('may be one of several, by one of several secrets, so that a secret can be replaced', () => {
    expect(isTaken({ 'webhook-signature': `v1,AAAA v2,BBBB ${signature}` }, { secrets: [otherSecret, secret] })).to.equal(true);
    expect(isTaken({}, { secrets: [] })).to.equal(false);
  });
});

describe('a signing secret', () => {
  const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`;

  it('has 24 to 64 bytes', () => {
    expect([23, 24, 64, 65].map((bytes) => isSigningSecret(of(bytes)))).to.deep.equal([false, true, true, false]);
  });

  it('may end with either padding', () => {
    expect([24, 25, 26].map((bytes) => isSigningSecret(of(bytes)))).to.deep.equal([true, true, true]);
  });

  for (const [what, text] of [
    ['without its prefix', of(32).slice(6)],
    ['with another prefix', of(32).replace('whsec_', 'secret')],
    ['that is not base64', `whsec_${'!'.repeat(44)}`],
    ['with a stray character before', of(33).replace('whsec_', 'whsec_ ')],
    ['with a stray character after', `${of(33)} `],
    ['with base64 cut off', of(33).slice(0, -1)],
    ['with wrong padding', `${of(33)}==`],
    ['with three signs of padding', `${of(33).slice(0, -3)}===`],
  ] as const) {
    it(`is not one ${what}`, () => expect(isSigningSecret(text)).to.equal(false));
  }

  it('is made of 32 random bytes', () => {
    expect(makeSigningSecret((size) => new Uint8Array(size).fill(1))).to.equal(of(32));
  });
});
