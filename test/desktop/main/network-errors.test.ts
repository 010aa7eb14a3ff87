import { expect } from 'chai';
import { toNetworkFailure, UnusableProxy } from '../../../desktop/main/network-errors.ts';

const toFailure = (error: unknown, server = 'https://calls.example.com', proxy = '') => toNetworkFailure(error, server, proxy);
const describeError = (error: unknown, server?: string) => toFailure(error, server).detail;

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

  it('says that nothing was sent only if that is certain', () => {
    const unsent = [
      'ECONNREFUSED',
      'ENOTFOUND',
      'UND_ERR_CONNECT_TIMEOUT',
      'CERT_HAS_EXPIRED',
      'ERR_SSL_WRONG_VERSION_NUMBER',
      'UND_ERR_PRX_CONN',
    ];
    for (const code of unsent) expect(toFailure(withCode(code)), code).to.include({ isUnsent: true });
    for (const code of ['ECONNRESET', 'UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'EPIPE', 'EWEIRD'])
      expect(toFailure(withCode(code)), code).not.to.have.property('isUnsent');
  });

  it('names the proxy without its password', () => {
    const proxied = (error: Error) => toFailure(error, undefined, 'http://ada:secret@proxy.example.com:3128').detail;
    for (const [error, says] of [
      [new Error('Proxy response (407) !== 200 when HTTP Tunneling'), 'requires a username and password'],
      [new Error('Proxy response (403) !== 200 when HTTP Tunneling'), 'doesn’t allow this server'],
      [new TypeError('fetch failed', { cause: new Error('Proxy response (502) !== 200 when HTTP Tunneling') }), 'can’t reach the server'],
      [withCode('UND_ERR_PRX_CONN'), 'isn’t responding'],
    ] as const)
      expect(proxied(error)).to.contain(says).and.contain('The proxy proxy.example.com:3128').and.not.contain('secret');
    expect(toFailure(new UnusableProxy('why'))).to.deep.equal({ kind: 'unreachable', detail: 'why', isUnsent: true });
  });

  for (const thrown of [new Error('no code'), 'a string', null]) {
    it(`gives general advice for ${String(thrown)}`, () => {
      expect(describeError(thrown)).to.equal('Connection failed. Check the address and your network connection.');
    });
  }
});
