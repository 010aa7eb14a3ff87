import { expect } from 'chai';
import { describeNetworkError } from '../../../desktop/main/network-errors.ts';

const withCode = (code: string) => Object.assign(new Error('connect failed at 10.0.0.7'), { code });

describe('describing a network error', () => {
  it('says what happened and what to check', () => {
    expect(describeNetworkError(withCode('ECONNREFUSED'))).to.equal(
      'Connection refused. Check the address, and make sure that the server is running.',
    );
  });

  it('uses the cause of an error without a code', () => {
    expect(describeNetworkError(new TypeError('fetch failed', { cause: withCode('ENOTFOUND') }))).to.equal(
      'Server not found. Check the address.',
    );
  });

  it('uses the error of the first address if several were tried', () => {
    const error = new AggregateError([withCode('ETIMEDOUT'), withCode('ECONNREFUSED')]);
    expect(describeNetworkError(error)).to.match(/^The server took too long to respond\./);
  });

  for (const code of ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY']) {
    it(`says that the certificate isn't trusted for ${code}`, () => {
      expect(describeNetworkError(withCode(code))).to.match(/^This computer doesn’t trust the server’s certificate\./);
    });
  }

  it('names an unknown code, but never quotes the message', () => {
    expect(describeNetworkError(withCode('EWEIRD'))).to.equal('Connection failed (EWEIRD). Check the address and your network connection.');
  });

  for (const thrown of [new Error('no code'), 'a string', null]) {
    it(`gives general advice for ${String(thrown)}`, () => {
      expect(describeNetworkError(thrown)).to.equal('Connection failed. Check the address and your network connection.');
    });
  }
});
