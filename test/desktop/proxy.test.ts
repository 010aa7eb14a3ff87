import { expect } from 'chai';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { signInAs } from '../support/console-harness.ts';
import { type CoreHarness, openCore, type RunningCore, startCoreHere } from '../support/core.ts';
import { describeDesktop, launchConsole } from '../support/electron.ts';
import { tunnel } from '../support/proxies.ts';
import { skip } from '../support/suites.ts';

describeDesktop('the console, behind a proxy,', () => {
  let harness: CoreHarness;
  let secure: RunningCore;
  let url: string;
  let env: Record<string, string>;
  before(async function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    const certificate = selfSignedCertificate();
    harness = await openCore();
    secure = await startCoreHere(harness.database, { environment: { ...certificate } });
    url = `https://localhost:${new URL(secure.url).port}`;
    env = { NODE_EXTRA_CA_CERTS: certificate.TLS_CERT_FILE };
  });
  after(() => Promise.all([secure?.close(), harness?.close()]));

  const signIn = (page: Parameters<typeof signInAs>[0]['page']) => signInAs({ ...harness, core: { ...secure, url }, page }, 'account');

  it('uses the one in HTTPS_PROXY with its user and password, but not for servers in NO_PROXY', async () => {
    const proxy = await tunnel();
    const HTTPS_PROXY = `http://ada:p%40ss@${proxy.address}`;
    const { page, close } = await launchConsole({ env: { ...env, HTTPS_PROXY } });
    await signIn(page);
    await close();
    expect(new Set(proxy.asked)).to.deep.equal(new Set([`${new URL(url).host} Basic ${btoa('ada:p@ss')}`]));
    proxy.asked.length = 0;
    const direct = await launchConsole({ env: { ...env, HTTPS_PROXY, NO_PROXY: 'localhost' } });
    await signIn(direct.page);
    await direct.close();
    expect(proxy.asked).to.deep.equal([]);
    await proxy.close();
  });

  it("uses the one in the system's settings as soon as they change, and names a proxy that refuses, isn't responding or isn't supported", async () => {
    const { page, app, close } = await launchConsole({ env });
    const change = (proxyRules: string) =>
      app.evaluate(
        ({ session }, rules) => session.defaultSession.setProxy({ proxyRules: rules, proxyBypassRules: '<-loopback>' }),
        proxyRules,
      );
    const options = () => page.evaluate((server) => window.callkey.getSignInOptions(server), url);
    const proxy = await tunnel();
    await change(`https=${proxy.address}`);
    expect(await options()).to.include({ ok: true });
    expect(proxy.asked).to.deep.equal([new URL(url).host]);
    await proxy.close();
    const refusing = await tunnel(407);
    await change(`https=${refusing.address}`);
    expect((await failure()).detail).to.contain(`The proxy ${refusing.address} returned 407. It requires a username and password`);
    await refusing.close();
    expect((await failure()).detail).to.contain(`The proxy ${refusing.address} isn’t responding.`);
    await change('https=socks4://127.0.0.1:1');
    expect((await failure()).detail).to.contain('The proxy 127.0.0.1:1 in this computer’s settings uses SOCKS4');
    await change('direct://');
    await signIn(page);
    await close();

    async function failure() {
      const result = await options();
      if (result.ok || result.failure.kind !== 'unreachable') throw new Error('The server was reached.');
      return result.failure;
    }
  });
});
