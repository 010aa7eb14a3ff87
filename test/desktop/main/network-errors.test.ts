import { expect } from 'chai';
import { describeNetworkError } from '../../../desktop/main/network-errors.ts';

const describeError = (error: unknown, server = 'https://calls.example.com') => describeNetworkError(error, server);

const withCode = (code: string) => Object.assign(new Error('connect failed at 10.0.0.7'), { code });

describe('describing a network error', () => {
  it('says what happened and what to check', () => {
    expect(describeError(withCode('ECONNREFUSED'))).to.equal(
      'Connection refused. Check the address, and make sure that the server is running.',
    );
  });

  it('uses the cause of an error without a code', () => {
    expect(describeError(new TypeError('fetch failed', { cause: withCode('ENOTFOUND') }))).to.equal('Server not found. Check the address.');
  });

  it('uses the error of the first address if several were tried', () => {
    const error = new AggregateError([withCode('ETIMEDOUT'), withCode('ECONNREFUSED')]);
    expect(describeError(error)).to.match(/^The server took too long to respond\./);
  });

  it('suggests http only for this computer, because the console refuses it elsewhere', () => {
    const problem = 'The server doesn’t use HTTPS at this address.';
    expect(describeError(withCode('EPROTO'), 'https://localhost:8080')).to.equal(`${problem} Try http://.`);
    expect(describeError(withCode('EPROTO'), 'https://calls.example.com:8080')).to.equal(`${problem} Check the port.`);
  });

  for (const code of ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY']) {
    it(`says that the certificate isn't trusted for ${code}`, () => {
      expect(describeError(withCode(code))).to.match(/^This computer doesn’t trust the server’s certificate\./);
    });
  }

  it('names an unknown code, but never quotes the message', () => {
    expect(describeError(withCode('EWEIRD'))).to.equal('Connection failed (EWEIRD). Check the address and your network connection.');
  });

  for (const thrown of [new Error('no code'), 'a string', null]) {
    it(`gives general advice for ${String(thrown)}`, () => {
      expect(describeError(thrown)).to.equal('Connection failed. Check the address and your network connection.');
    });
  }
});
