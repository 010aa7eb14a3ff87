import { expect } from 'chai';
import { startCoreHere } from '../../support/core.ts';
import { ask } from '../../support/http.ts';
import { sessionSuite } from '../../support/session-suite.ts';
import { password } from '../../support/tenants.ts';

describe('in sessions,', () => {
  const at = sessionSuite();
  const { tryPassword } = at;

  describe("the client's address is taken", () => {
    /** Returns the address where the latest session was started, according to the audit events. */
    const seenFrom = async (headers: Record<string, string>) => {
      await tryPassword('ada@example.com', password, headers);
      const events = at.direct.storage.database.read('audit_events').where({ action: 'session.started' });
      return (await events.orderBy('id', 'desc').first('address'))?.address;
    };

    for (const [what, forwarded, address] of [
      ['from the trusted proxy, whatever the client sent', '203.0.113.9, 198.51.100.7', '198.51.100.7'],
      ['in IPv4 if the proxy sends it mapped to IPv6', '::ffff:198.51.100.12', '198.51.100.12'],
      ['in IPv4 if the proxy sends it mapped to IPv6 without dots', '::ffff:C633:640d', '198.51.100.13'],
      ['in IPv4 without the port that the proxy sends', '203.0.113.9:1, 198.51.100.14:5678', '198.51.100.14'],
      ['in normalized IPv6', '2001:DB8:0:0::7', '2001:db8::7'],
      ['in IPv6 without the port that the proxy sends', '[2001:db8::8]:443', '2001:db8::8'],
      ['in IPv6 if it only looks mapped', '64::ffff:198.51.100.7', '64::ffff:c633:6407'],
      ['from the entry before a trusted proxy with a port', '198.51.100.15, 127.0.0.1:4711', '198.51.100.15'],
      ["from the proxy itself if it doesn't send an address", '198.51.100.16, unknown', '127.0.0.1'],
    ] as const) {
      it(what, async () => {
        expect(await seenFrom({ 'X-Forwarded-For': forwarded })).to.equal(address);
      });
    }

    it("from the connection if no proxy is trusted, or the proxy doesn't send an address", async () => {
      expect(await seenFrom({})).to.equal('127.0.0.1');
      const withoutProxies = await startCoreHere(at.database, { clock: at.clock });
      const body = { email: 'ada@example.com', password };
      await ask('POST', `${withoutProxies.url}/console/session`, { body, headers: { 'X-Forwarded-For': '198.51.100.7' } });
      await withoutProxies.close();
      const events = at.direct.storage.database.read('audit_events').where({ action: 'session.started' });
      expect((await events.orderBy('id', 'desc').first('address'))?.address).to.equal('127.0.0.1');
    });
  });

  it('of requests from the same origin over HTTPS are accepted if a proxy ends TLS', async () => {
    const overHttps = { 'X-Forwarded-Proto': 'https', Origin: at.core.url.replace('http:', 'https:') };
    expect((await tryPassword('ada@example.com', password, overHttps)).status).to.equal(201);
  });
});
