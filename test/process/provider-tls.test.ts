import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { certificateAuthority, hasOpenssl } from '../support/certificate.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { signInWithProvider, startProvider, TestBrowser, type TestProvider } from '../support/identity-provider.ts';
import { type Front, startFront } from '../support/proxies.ts';
import { skip } from '../support/suites.ts';
import { databaseWithTenants } from '../support/tenants.ts';

describe('a provider with a certificate from its own authority (needs openssl)', () => {
  const trusted = getCACertificates('default');
  let authority: ReturnType<typeof certificateAuthority>;
  let front: Front;
  let provider: TestProvider;
  let core: CoreProcess | undefined;

  before(function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    authority = certificateAuthority();
    // The test's browser runs in this process, and must trust the authority.
    setDefaultCACertificates([...trusted, readFileSync(authority.caFile, 'utf8')]);
  });
  after(() => setDefaultCACertificates(trusted));
  beforeEach(async () => {
    front = await startFront();
    provider = await startProvider([front.url], { ...authority, host: 'localhost' });
  });
  afterEach(async () => {
    await core?.stop();
    await provider.close();
    await front.close();
  });

  async function start(environment: Record<string, string>): Promise<void> {
    const { database } = await databaseWithTenants('sqlite');
    core = await spawnCore(database, { ...provider.environment(front.url), ...environment });
    front.leadTo(core.url);
  }

  it('signs users in to a core with NODE_EXTRA_CA_CERTS', async () => {
    await start({ NODE_EXTRA_CA_CERTS: authority.caFile });
    expect(await signInWithProvider({ url: front.url })).to.equal('done');
  });

  it('isn’t trusted without NODE_EXTRA_CA_CERTS, even with NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
    await start({ NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    const { headers } = await new TestBrowser().open(`${front.url}/console/oidc`);
    expect(headers['location']).to.equal(`${front.url}/?sign-in=unreachable`);
    expect(provider.requests).to.deep.equal([]);
  });
});
