import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { Agent, request } from 'undici';
import { freePort } from '../../scripts/support/postgres.ts';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { spawnCore } from '../support/core.ts';
import { hasProxy, proxyKinds, startProxy } from '../support/proxies.ts';
import { openOnce, skip } from '../support/suites.ts';
import { createKey, databaseWithTenants, onDemand, openDirect, password, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** Trusts any certificate. */
const agent = new Agent({ connect: { rejectUnauthorized: false } });

type Sent = { method: 'GET' | 'POST' | 'DELETE'; url: string; headers?: Record<string, string>; body?: object };

async function send({ method, url, headers = {}, body }: Sent) {
  const json = body === undefined ? {} : { 'Content-Type': 'application/json' };
  const sent = body === undefined ? null : JSON.stringify(body);
  const answer = await request(url, { method, headers: { ...json, ...headers }, body: sent, dispatcher: agent });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

it('the shipped proxies close idle connections to a core before the core does, so that no POST meets a closing connection', () => {
  const shipped = (name: string) => readFileSync(new URL(`../../core/${name}`, import.meta.url), 'utf8');
  const [, idle = ''] = /keepAliveTimeout: (\d+)_000/.exec(shipped('server/connections/listener.ts')) ?? [];
  const [, nginx = ''] = /keepalive_timeout (\d+)s;/.exec(shipped('deploy/nginx.conf')) ?? [];
  const [, caddy = ''] = /keepalive (\d+)s$/m.exec(shipped('deploy/Caddyfile')) ?? [];
  const [, haproxy = ''] = /pool-purge-delay (\d+)s$/m.exec(shipped('deploy/haproxy.cfg')) ?? [];
  // HAProxy closes half of them each time, of 60,000 the last one at the 19th time.
  for (const longest of [Number(nginx), Number(caddy), 19 * Number(haproxy)]) expect(longest).to.be.within(1, Number(idle) - 5);
});

describe('two cores behind a proxy configured as in core/deploy', () => {
  // The cores, the database and the key are the same behind each proxy.
  const its = openOnce(async () => {
    const ports = { port: await freePort(10_000), managementPort: await freePort(10_000) };
    const { database, tenants } = await databaseWithTenants('sqlite');
    const start = (host: string) =>
      spawnCore(database, {
        ...{ HOST: host, PORT: String(ports.port), MANAGEMENT_HOST: host, MANAGEMENT_PORT: String(ports.managementPort) },
        ...{ TRUSTED_PROXIES: '127.0.0.1', DRAIN_DELAY: '5' },
      });
    const direct = await openDirect(database);
    const first = await start('127.0.0.1');
    const cores = new Map([
      ['127.0.0.1', first],
      ['127.0.0.2', await start('127.0.0.2')],
    ]);
    const { keyValue } = await createKey(first.url, await signIn(first.url, 'ada@example.com'));
    const close = async () => {
      for (const core of cores.values()) await core.stop();
      await direct.close();
      await agent.close();
    };
    return { ports, tenants, start, direct, cores, keyValue, close };
  });

  let placed = 0;
  let cancelled = 0;
  for (const [index, kind] of proxyKinds.entries()) {
    it(`don't lose a request or accept one twice while one of them restarts, with ${kind}`, async function () {
      this.timeout(120_000);
      if (!hasOpenssl) skip(this, "openssl isn't installed");
      if (!hasProxy(kind)) skip(this, `${kind} isn't installed`);
      const { ports, tenants, start, direct, cores, keyValue } = its;
      // The proxy is started last, because it marks cores that aren't running yet as unhealthy.
      const proxy = await startProxy(kind, ports, selfSignedCertificate());
      const session = `${proxy.url}/console/session`;
      await until(async () => (await send({ method: 'GET', url: session }).catch(() => null))?.status === 401);

      const calls = onDemand(proxy.url, tenants.campaign.id);
      const headers = { 'X-API-Key': keyValue };
      const failures: unknown[] = [];
      let isOver = false;
      const load = async () => {
        while (!isOver) {
          // The call has no request ID, so if a proxy sends this request twice, it places two calls.
          const answer = await send({ method: 'POST', url: calls, headers, body: { contact: { phone: somePhone() } } }).catch(String);
          if (typeof answer === 'string' || answer.status !== 202) failures.push(answer);
          else if (++placed % 3 === 0) {
            const gone = await send({ method: 'DELETE', url: `${calls}/${JSON.parse(answer.text).contactId}`, headers }).catch(String);
            if (typeof gone === 'string' || gone.status !== 200) failures.push(gone);
            else cancelled++;
          }
          await setTimeout(80);
        }
      };
      const loads = Promise.all([1, 2, 3, 4].map(load));
      const another = async (count: number) => {
        const goal = placed + count;
        await until(() => placed >= goal);
      };
      try {
        await another(25);
        // Behind the next proxy, the other one.
        const [host, core] = [...cores][index % 2] ?? expect.fail();
        expect(await core.stop()).to.equal(0);
        const again = await start(host);
        cores.set(host, again);
        // As the documentation says: the next core may be restarted when the proxy uses this core again.
        await until(async () => (await send({ method: 'GET', url: `${again.managementUrl}/metrics` })).text.includes('status="202"'));
        await another(25);
      } finally {
        isOver = true;
        await loads;
      }
      const spoofed = { Origin: proxy.url, 'X-Forwarded-For': '203.0.113.9', 'X-Forwarded-Proto': 'http' };
      const signedIn = await send({
        method: 'POST',
        url: session,
        headers: spoofed,
        body: { email: 'tom@example.com', password },
      });
      await proxy.stop();
      const { read } = direct.storage.database;
      const rows: { state: string }[] = await read('calls').select('state');
      const addresses = await read('audit_events').whereNot({ address: 'local' }).distinct().pluck('address');
      expect(failures.length, JSON.stringify(failures[0])).to.equal(0);
      expect(proxy.stderrLines.join('')).not.to.contain(keyValue);
      expect([rows.length, rows.filter(({ state }) => state === 'cancelled').length]).to.deep.equal([placed, cancelled]);
      expect(signedIn.headers['strict-transport-security']).to.equal('max-age=31536000');
      expect(String(signedIn.headers['set-cookie'])).to.match(/^__Host-.*; secure/i);
      expect(addresses).to.deep.equal(['127.0.0.1']);
    });
  }
});
