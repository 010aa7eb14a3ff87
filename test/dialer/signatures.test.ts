import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { isSignedByRetell, isSignedByTwilio } from '../../scripts/providers/signatures.ts';

describe('the signature of', () => {
  it("Twilio is verified as in Twilio's own example", () => {
    const fields = {
      CallSid: 'CA1234567890ABCDE',
      Caller: '+14158675310',
      Digits: '1234',
      From: '+14158675310',
      To: '+18005551212',
    };
    const url = 'https://mycompany.com/myapp.php?foo=1&bar=2';
    const check = (signature: string, more = {}) => isSignedByTwilio('12345', signature, url, new URLSearchParams({ ...fields, ...more }));
    expect(check('GvWf1cFY/Q7PnoempGyD5oXAezc=')).to.equal(true);
    expect(check('GvWf1cFY/Q7PnoempGyD5oXAezc=', { Digits: '1235' })).to.equal(false);
    expect(check('')).to.equal(false);
    expect(check('AAAA')).to.equal(false);
  });

  it("Retell covers the body and the time, and is valid for five minutes, as in Retell's library", () => {
    const [key, body, time] = ['key_1', '{"event":"call_ended"}', 1_795_000_000_000];
    const digest = createHmac('sha256', key).update(`${body}${time}`).digest('hex');
    const check = (signature: string, now = time) => isSignedByRetell(key, signature, body, now);
    expect(check(`v=${time},d=${digest}`)).to.equal(true);
    const wrong = [`v=${time + 1},d=${digest}`, `v=${time},d=`, digest, ''];
    expect([...wrong.map((signature) => check(signature)), check(`v=${time},d=${digest}`, time + 300_000)]).to.deep.equal(
      Array(5).fill(false),
    );
  });
});
