import { copyFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { expect } from 'chai';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { skip } from '../support/skip.ts';
import { until } from '../support/until.ts';

/** Returns the fingerprint of the certificate that a new connection gets. */
function fingerprint({ url }: RunningCore): Promise<string> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    }).on('error', reject);
  });
}

describe('a renewed certificate', () => {
  it('is used for new connections without a restart, but only once its key file has been renewed as well', async function () {
    this.timeout(30_000);
    if (!hasOpenssl) skip(this, "openssl isn't installed");
    const inUse = selfSignedCertificate();
    const renewed = selfSignedCertificate();
    const core = await startCoreHere(await freshDatabase('sqlite'), { environment: inUse });
    const logged = (text: string) => core.log.some(({ msg }) => String(msg).startsWith(text));
    const before = await fingerprint(core);
    copyFileSync(renewed.TLS_CERT_FILE, inUse.TLS_CERT_FILE);
    await until(() => logged('certificate not reloaded'));
    expect(await fingerprint(core)).to.equal(before);
    copyFileSync(renewed.TLS_KEY_FILE, inUse.TLS_KEY_FILE);
    await until(() => logged('certificate reloaded'));
    expect(await fingerprint(core)).not.to.equal(before);
    await core.close();
  });
});
