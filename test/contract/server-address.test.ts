import { expect } from 'chai';
import { isLoopback, readServerAddress } from '#contract/server-address.ts';

describe("a core's address", () => {
  for (const [typed, address] of Object.entries({
    'https://calls.example.com': 'https://calls.example.com',
    'https://calls.example.com/': 'https://calls.example.com',
    'HTTPS://Calls.Example.com:8443/callkey//': 'https://calls.example.com:8443/callkey',
    'http://localhost:8080': 'http://localhost:8080',
    'http://[::1]:8080': 'http://[::1]:8080',
    'http://127.1': 'http://127.0.0.1',
  })) {
    it(`is parsed from ${typed}`, () => {
      expect(readServerAddress(typed)).to.deep.equal({ ok: true, address });
    });
  }

  for (const typed of ['', 'calls.example.com', 'ftp://calls.example.com', 'xhttps://a.b', 'https://', 'file:///etc/passwd']) {
    it(`is refused without http or https: "${typed}"`, () => {
      const problem = `"${typed}" isn't a server address. Use an address such as https://calls.example.com`;
      expect(readServerAddress(typed)).to.deep.equal({ ok: false, problem });
    });
  }

  for (const typed of [
    'https://ada@calls.example.com',
    'https://:secret@calls.example.com',
    'https://calls.example.com/?a',
    'https://a.b/#c',
  ]) {
    it(`is refused with anything besides a host, port and path: ${typed}`, () => {
      const problem = 'The server address can have only a host, a port and a path.';
      expect(readServerAddress(typed)).to.deep.equal({ ok: false, problem });
    });
  }

  for (const typed of ['http://calls.example.com', 'http://10.0.0.7', 'http://localhost.example.com', 'http://127.0.0.1.example.com']) {
    it(`is refused for another machine over plain HTTP: ${typed}`, () => {
      const problem = `Keys and passwords would cross the network unencrypted. Use ${typed.replace('http', 'https')}`;
      expect(readServerAddress(typed)).to.deep.equal({ ok: false, problem });
    });
  }
});

describe('the local machine', () => {
  for (const host of ['localhost', '::1', '[::1]', '127.0.0.1', '127.10.200.30']) {
    it(`includes ${host}`, () => expect(isLoopback(host)).to.equal(true));
  }
  for (const host of ['', '::2', '1127.0.0.1', '127.0.0', '127.0.0.1.example.com', '128.0.0.1']) {
    it(`excludes ${host === '' ? 'an empty host' : host}`, () => expect(isLoopback(host)).to.equal(false));
  }
});
