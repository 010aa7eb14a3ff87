import { expect } from 'chai';
import { Agent, request } from 'undici';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { overSocket } from '../support/http.ts';
import { skip } from '../support/suites.ts';
import { databaseWithTenants, onDemand } from '../support/tenants.ts';

describe("a core's transport security", () => {
  let core: RunningCore;
  const start = async (environment: Record<string, string> = {}) => {
    core = await startCoreHere((await databaseWithTenants('sqlite')).database, { environment });
  };
  const warning = () => core.log.find(({ msg }) => String(msg).startsWith('plain HTTP on a non-loopback address'));
  afterEach(() => core.close());

  it('is announced to browsers in every response over TLS, but not over HTTP', async function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    await start({ ...selfSignedCertificate(), HOST: '0.0.0.0', DRAIN_DELAY: '0' });
    const agent = new Agent({ connect: { rejectUnauthorized: false } });
    const answers = new Map<string, unknown>();
    for (const path of ['/', '/nowhere', '/console/session', new URL(onDemand(core.url, 'c')).pathname]) {
      const { statusCode, headers, body } = await request(core.url + path, {
        method: path.startsWith('/api') ? 'POST' : 'GET',
        dispatcher: agent,
      });
      await body.dump();
      answers.set(`${path} ${statusCode}`, headers['strict-transport-security']);
    }
    await agent.close();
    expect(new Set(answers.values())).to.deep.equal(new Set(['max-age=31536000']));
    expect(answers.size).to.equal(4);
    expect(warning()).to.equal(undefined);
    await core.close();
    await start();
    expect(await overSocket(core.url, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).not.to.match(/strict-transport/i);
  });

  it('causes a warning in the log if it is missing on a non-loopback address, but not on loopback', async () => {
    await start({ HOST: '0.0.0.0', DRAIN_DELAY: '0' });
    expect(warning()).to.include({ level: 'warn', host: '0.0.0.0' });
    await core.close();
    await start();
    expect(warning()).to.equal(undefined);
  });

  describe('the management listener', () => {
    const statusFor = async (host: string | null) => {
      const { port } = new URL(core.managementUrl ?? '');
      const line = host === null ? '' : `Host: ${host}\r\n`;
      const answer = await overSocket(
        `http://127.0.0.1:${port}`,
        `GET /healthz HTTP/1.${host === null ? 0 : 1}\r\n${line}Connection: close\r\n\r\n`,
      );
      return answer.slice(9, 12);
    };
    const statusesFor = async (hosts: readonly (string | null)[]) => {
      const statuses: string[] = [];
      for (const host of hosts) statuses.push(await statusFor(host));
      return [...new Set(statuses)];
    };

    it("on loopback, accepts only IP addresses and localhost, so that a web page can't read it through its own domain name", async () => {
      await start();
      expect(
        await statusesFor(['127.0.0.1:8081', '127.0.0.1', '[::1]:8081', '192.0.2.7', 'localhost', 'LOCALHOST:8081', null]),
      ).to.deep.equal(['200']);
      expect(await statusesFor(['evil.example', 'core', 'core.local', '127.0.0.1.evil.example', 'localhost.evil.example'])).to.deep.equal([
        '421',
      ]);
      expect(await statusFor('a b')).to.equal('400');
    });

    it("on a non-loopback address, also accepts names that can't be registered, as used by containers and clusters", async () => {
      await start({ MANAGEMENT_HOST: '0.0.0.0' });
      const inCluster = ['core:8081', 'callkey.default.svc', 'callkey.default.svc.cluster.local:8081', 'callkey.service.consul'];
      const inHouse = ['core.internal', 'core.lan', 'core.home.arpa', 'core.local.', '192.0.2.7:8081'];
      expect(await statusesFor([...inCluster, ...inHouse])).to.deep.equal(['200']);
      expect(await statusesFor(['evil.example:8081', 'internal.example', 'core.local.example', 'lan.example'])).to.deep.equal(['421']);
    });

    it('accepts the names in MANAGEMENT_NAMES, whatever its address is', async () => {
      await start({ MANAGEMENT_NAMES: 'Core-1.example.com, *.service.example.net' });
      expect(await statusesFor(['core-1.example.com:8081', 'CORE-1.example.com.', 'callkey.service.example.net'])).to.deep.equal(['200']);
      expect(await statusesFor(['example.com', 'service.example.net', 'x.core-1.example.com', 'evilservice.example.net'])).to.deep.equal([
        '421',
      ]);
    });

    it("accepts the host name that it's bound to", async () => {
      await start({ MANAGEMENT_HOST: 'localhost' });
      expect(await statusesFor(['localhost:8081'])).to.deep.equal(['200']);
    });
  });
});
