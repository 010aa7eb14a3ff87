import { expect } from 'chai';
import { CallkeyClient } from '../../cli/client/index.ts';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { sharedIntegrator } from '../support/integrator.ts';
import { tunnel } from '../support/proxies.ts';
import { skip } from '../support/suites.ts';
import { somePhone } from '../support/tenants.ts';

describe('callkey with certificates and proxies', () => {
  const its = sharedIntegrator();

  const placeArgs = (phone: string, ...more: string[]) => ['call', 'place', its.tenants.campaign.id, '--phone', phone, ...more];
  const callsTo = (phone: string) => its.direct.storage.database.read('calls').where({ phone });

  let secure: RunningCore;
  let certificate: ReturnType<typeof selfSignedCertificate>;
  let server: string;

  before(async function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    certificate = selfSignedCertificate();
    secure = await startCoreHere(its.database, { environment: { ...certificate } });
    server = `https://localhost:${new URL(secure.url).port}`;
  });
  after(() => secure?.close());
  const trusting = () => ({ CALLKEY_SERVER: server, NODE_EXTRA_CA_CERTS: certificate.TLS_CERT_FILE });

  it('checks the certificate whatever NODE_TLS_REJECT_UNAUTHORIZED says, even as a library, warns about it, and neither retries nor leaves a call in doubt', async () => {
    const environment = { CALLKEY_SERVER: server, NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    const { code, stderr } = await its.home.run(placeArgs(somePhone(), '--verbose'), { environment });
    expect(code).to.equal(1);
    expect(stderr)
      .to.match(/NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored/)
      .and.match(/certificate.*NODE_EXTRA_CA_CERTS/)
      .and.not.match(/trying again|may have been placed/);
    expect(its.home.files()).to.deep.equal([]);
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    const client = new CallkeyClient({ server, keyValue: its.key });
    const error: unknown = await client.cancel('none', { requestId: 'none' }).catch((thrown: unknown) => thrown);
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
    await client.close();
    expect(error).to.include({ code: 'untrusted-certificate' });
  });

  it("exits immediately if the server doesn't support TLS", async () => {
    const environment = { CALLKEY_SERVER: its.network.url.replace('http:', 'https:') };
    const { code, stderr } = await its.home.run(placeArgs(somePhone(), '--verbose'), { environment });
    expect(code).to.equal(1);
    expect(stderr)
      .to.match(/doesn't use TLS/)
      .and.not.match(/trying again/);
  });

  it('uses the proxy in HTTPS_PROXY with its user and password', async () => {
    const proxy = await tunnel();
    const phone = somePhone();
    const environment = { ...trusting(), HTTPS_PROXY: `http://ada:p%40ss@${proxy.address}` };
    const { code, stderr } = await its.home.start(placeArgs(phone, '--verbose'), { environment }).ended;
    await proxy.close();
    expect(code, stderr).to.equal(0);
    expect(proxy.asked).to.deep.equal([`localhost:${new URL(server).port} Basic ${btoa('ada:p@ss')}`]);
    expect(stderr).not.to.contain('p%40ss').and.not.contain('p@ss');
    expect(await callsTo(phone)).to.have.length(1);
  });

  it('bypasses the proxy for servers in NO_PROXY, and for this machine without TLS, because the proxy would see the key', async () => {
    const proxy = await tunnel();
    const proxies = { HTTPS_PROXY: proxy.address, HTTP_PROXY: `http://${proxy.address}`, http_proxy: `http://${proxy.address}` };
    const noProxy = await its.home.start(placeArgs(somePhone()), { environment: { ...trusting(), ...proxies, NO_PROXY: 'localhost' } })
      .ended;
    expect(noProxy.code, noProxy.stderr).to.equal(0);
    expect((await its.home.run(placeArgs(somePhone()), { environment: proxies })).code).to.equal(0);
    await proxy.close();
    expect(proxy.asked).to.deep.equal([]);
  });

  it('reports immediately that the proxy in HTTPS_PROXY or https_proxy refused, and for 407 that it requires a password', async () => {
    for (const [status, variable, says] of [
      [407, 'HTTPS_PROXY', /HTTPS_PROXY=http:\/\/USER:PASSWORD@/],
      [403, 'https_proxy', /proxy.*403/],
    ] as const) {
      const proxy = await tunnel(status);
      const environment = { CALLKEY_SERVER: server, [variable]: `http://${proxy.address}` };
      const { code, stderr } = await its.home.run(placeArgs(somePhone(), '--verbose'), { environment });
      await proxy.close();
      expect(code, stderr).to.equal(1);
      expect(stderr)
        .to.match(says)
        .and.not.match(/trying again/);
    }
  });

  for (const address of ['ftp://ada:secret@proxy.example.com', 'http://ada:secret%@proxy.example.com']) {
    it(`exits with 2 for an invalid proxy address, without repeating its password: ${address.replace('secret', '…')}`, async () => {
      const environment = { CALLKEY_SERVER: server, HTTPS_PROXY: address };
      const { code, stderr } = await its.home.run(placeArgs(somePhone()), { environment });
      expect(code).to.equal(2);
      expect(stderr).to.contain('HTTPS_PROXY').and.not.contain('secret');
    });
  }

  it("says that the proxy isn't responding, both if the connection fails and if the proxy stays silent", async () => {
    const gone = await tunnel();
    await gone.close();
    const silent = await tunnel(null);
    const doctor = async (address: string, ...more: string[]) => {
      const environment = { CALLKEY_SERVER: server, HTTPS_PROXY: `http://${address}` };
      const { code, stdout } = await its.home.run(['doctor', ...more], { environment });
      return [code, /FAIL +server +(.*)/.exec(stdout)?.[1]];
    };
    const [withoutProxy, withSilentProxy] = await Promise.all([doctor(gone.address), doctor(silent.address, '--timeout', '1')]);
    await silent.close();
    expect(withoutProxy).to.deep.equal([7, `Couldn't reach ${server} (1 attempt): the proxy in HTTPS_PROXY isn't responding.`]);
    expect(withSilentProxy).to.deep.equal([7, `Couldn't reach ${server} (1 attempt): no response in time.`]);
  });
});
