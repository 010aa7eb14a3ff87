import { expect } from 'chai';
import { codeAt, matchingStep, otpauthUri, toBase32, totp } from '../../core/domain/sign-in/second-factor.ts';

const secret = Buffer.from('12345678901234567890');

describe('a TOTP code', () => {
  // RFC 6238 appendix B, SHA-1.
  for (const [seconds, code] of [
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ] as const) {
    it(`is ${code} at ${seconds} seconds`, () => {
      expect(codeAt(secret, Math.floor(seconds / 30), 8)).to.equal(code);
      expect(codeAt(secret, Math.floor(seconds / 30))).to.equal(code.slice(2));
    });
  }

  it('is accepted from the start of the previous step to the end of the next', () => {
    const step = 1_000_000;
    const code = codeAt(secret, step);
    const starts = (step - 1) * totp.stepMs;
    const ends = (step + 2) * totp.stepMs;
    expect([starts, ends - 1].map((now) => matchingStep(secret, code, now))).to.deep.equal([step, step]);
    expect([starts - 1, ends].map((now) => matchingStep(secret, code, now))).to.deep.equal([null, null]);
  });

  it('must have all digits', () => {
    expect(
      ['', '1', `${codeAt(secret, 5)}0`, codeAt(secret, 5).slice(1)].map((code) => matchingStep(secret, code, 5 * totp.stepMs)),
    ).to.deep.equal([null, null, null, null]);
  });
});

describe("an authenticator app's secret", () => {
  it('is written in base32', () => {
    expect(toBase32(Buffer.from('Hello!\xde\xad\xbe\xef', 'latin1'))).to.equal('JBSWY3DPEHPK3PXP');
    expect(toBase32(secret)).to.equal('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ');
  });

  it('is in a URI with the server as the issuer, and the escaped account', () => {
    const issuer = 'Callkey%20calls.example.com%208443';
    const uri = `otpauth://totp/${issuer}:ada%2Btest%40example.com?secret=GEZD&issuer=${issuer}`;
    expect(otpauthUri('GEZD', 'ada+test@example.com', 'calls.example.com:8443')).to.equal(uri);
  });
});
