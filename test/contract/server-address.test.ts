import { expect } from 'chai';
import { readServerAddress } from '#contract/server-address.ts';

describe('the address of a core', () => {
  for (const [typed, address] of Object.entries({
    'https://calls.example.com': 'https://calls.example.com',
    'https://calls.example.com/': 'https://calls.example.com',
    'HTTPS://Calls.Example.com:8443/callkey//': 'https://calls.example.com:8443/callkey',
    'http://localhost:8080': 'http://localhost:8080',
    'http://[::1]:8080': 'http://[::1]:8080',
    'http://127.1': 'http://127.0.0.1',
  })) {
    it(`is read from ${typed}`, () => {
      expect(readServerAddress(typed)).to.deep.equal({ ok: true, address });
    });
  }

  for (const typed of ['', 'calls.example.com', 'ftp://calls.example.com', 'https://', 'file:///etc/passwd']) {
    it(`is refused without http or https: "${typed}"`, () => {
      expect(readServerAddress(typed)).to.have.property('ok', false);
    });
  }

  for (const typed of [
    'https://ada@calls.example.com',
    'https://:secret@calls.example.com',
    'https://calls.example.com/?a',
    'https://a.b/#c',
  ]) {
    it(`is refused with more than host, port and path: ${typed}`, () => {
      expect(readServerAddress(typed)).to.have.property('ok', false);
    });
  }

  for (const typed of ['http://calls.example.com', 'http://10.0.0.7', 'http://localhost.example.com', 'http://127.0.0.1.example.com']) {
    it(`is refused over plain http to another machine: ${typed}`, () => {
      expect(readServerAddress(typed)).to.have.property('ok', false);
    });
  }
});
