import { X509Certificate } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { expect } from 'chai';
import { pino } from 'pino';
import { describeValidity, watchCertificate } from '../../core/server/connections/tls.ts';
import { readTls, type Tls } from '../../core/server/start/config.ts';
import { systemClock } from '../../core/server/start/system.ts';
import { hasOpenssl, selfSignedCertificate } from '../support/certificate.ts';
import { type RunningCore, startCoreHere } from '../support/core.ts';
import { freshDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { skip } from '../support/suites.ts';
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

describe("a certificate's dates", () => {
  before(function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
  });

  it('cause an error when the certificate has expired or is not valid yet, and a warning two weeks before it expires', () => {
    const cert = readFileSync(selfSignedCertificate({ days: 30 }).TLS_CERT_FILE);
    const { validFromDate: from, validToDate: to } = new X509Certificate(cert);
    const day = 86_400_000;
    const textAt = (ms: number) => describeValidity({ cert }, ms);
    expect(textAt(to.getTime() - 15 * day)).to.equal(null);
    expect(textAt(to.getTime() - 13 * day)).to.deep.equal({
      ...{ level: 'warn', text: `the TLS certificate expires at ${to.toISOString()}: renew it` },
    });
    expect(textAt(to.getTime())).to.deep.equal({ level: 'error', text: `the TLS certificate expired at ${to.toISOString()}: renew it` });
    expect(textAt(from.getTime() - 1)?.level).to.equal('error');
  });

  it('are logged at startup, and the end is a metric', async () => {
    const inUse = selfSignedCertificate();
    const core = await startCoreHere(await freshDatabase('sqlite'), { environment: inUse });
    const { text } = await ask('GET', `${core.managementUrl}/metrics`);
    await core.close();
    const end = new X509Certificate(readFileSync(inUse.TLS_CERT_FILE)).validToDate.getTime() / 1_000;
    expect(core.log.filter(({ msg }) => String(msg).startsWith('the TLS certificate expires at'))).to.have.length(1);
    expect(text).to.contain(`\ncallkey_certificate_expires_timestamp_seconds ${end}\n`);
  });
});

describe('a renewed certificate', () => {
  before(function () {
    if (!hasOpenssl) skip(this, "openssl isn't installed");
  });

  it('is used even if it was renewed between its reading at the start and the first look at its files', async () => {
    const inUse = selfSignedCertificate();
    const renewed = selfSignedCertificate();
    const read = readTls(inUse.TLS_CERT_FILE, inUse.TLS_KEY_FILE);
    copyFileSync(renewed.TLS_CERT_FILE, inUse.TLS_CERT_FILE);
    copyFileSync(renewed.TLS_KEY_FILE, inUse.TLS_KEY_FILE);
    let watched: ReturnType<typeof watchCertificate> | undefined;
    const { cert } = await new Promise<Tls>((use) => {
      watched = watchCertificate(read, use, { log: pino({ level: 'silent' }), clock: systemClock });
    });
    watched?.end();
    expect(cert).to.deep.equal(readFileSync(renewed.TLS_CERT_FILE));
  });

  it('is used for new connections without a restart, but only once its key file has been renewed as well', async () => {
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
