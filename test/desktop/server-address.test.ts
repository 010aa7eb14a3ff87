import { expect } from 'chai';
import { readTypedAddress } from '../../desktop/server-address.ts';

describe('a typed server address', () => {
  const read = (typed: string) => {
    const parsed = readTypedAddress(typed);
    return parsed.ok ? parsed.address : parsed.problem;
  };

  it('defaults to HTTPS without a scheme, but to HTTP for the local machine', () => {
    expect(['calls.example.com', ' calls.example.com/api/ ', '192.0.2.7:8080'].map(read)).to.deep.equal([
      'https://calls.example.com',
      'https://calls.example.com/api',
      'https://192.0.2.7:8080',
    ]);
    expect(['127.0.0.1:8080', 'localhost', '[::1]:8080'].map(read)).to.deep.equal([
      'http://127.0.0.1:8080',
      'http://localhost',
      'http://[::1]:8080',
    ]);
  });

  it("is found in a link from a browser's address bar", () => {
    for (const link of ['#/api-keys?search=Blue', '?sign-in=done#/calls', '#'])
      expect(read(`https://calls.example.com/callkey/${link}`)).to.equal('https://calls.example.com/callkey');
    expect(read('calls.example.com/#/api-keys')).to.equal('https://calls.example.com');
  });

  it('keeps its scheme', () => {
    expect(read('https://localhost:8443')).to.equal('https://localhost:8443');
    expect(read('http://calls.example.com')).to.include('Use https');
  });
});
