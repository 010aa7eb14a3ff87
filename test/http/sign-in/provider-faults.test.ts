import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect } from 'chai';
import { type LogLine, openCore, startCoreHere } from '../../support/core.ts';
import { ask } from '../../support/http.ts';
import {
  finishSignIn,
  goToProvider,
  openWithProvider,
  providerSuite,
  signInWithProvider,
  TestBrowser,
} from '../../support/identity-provider.ts';
import { openForEach, openOnce } from '../../support/suites.ts';
import { password, signIn } from '../../support/tenants.ts';

type Answer = (req: IncomingMessage, res: ServerResponse) => void;

const faults: [string, Answer][] = [
  ['hangs up', (req) => void req.socket.destroy()],
  ['is down behind its proxy', (_req, res) => void res.writeHead(503).end()],
  ['returns HTML', (_req, res) => void res.writeHead(200, { 'Content-Type': 'text/html' }).end('<h1>Welcome</h1>')],
  ['labels HTML as JSON', (_req, res) => void res.writeHead(200, { 'Content-Type': 'application/json' }).end('<h1>Welcome</h1>')],
  ['redirects elsewhere', (_req, res) => void res.writeHead(302, { Location: '/elsewhere' }).end()],
];

/** Begins a sign-in. @returns where the core sends the browser, without the PUBLIC_URL */
const start = async ({ url }: { url: string }, publicUrl = url) => {
  const { headers } = await new TestBrowser().open(`${url}/console/oidc`);
  return String(headers['location']).replace(publicUrl, '');
};

const failures = (log: readonly LogLine[]) => log.filter(({ msg }) => msg === 'sign-in with the provider failed');

describe('a provider that', () => {
  // Without this, only the first sign-in would ask for the discovery document.
  const { harness } = providerSuite('sqlite', { identityProvider: { metadataLife: 0 } });
  /** In ms. Less than openid-client's own limit, which would apply without the core's. */
  const lessThanOwnLimit = 25_000;
  /** A core that soon gives up on the provider. */
  const impatient = openOnce(() =>
    startCoreHere(harness.database, {
      environment: harness.provider.environment(harness.url),
      identityProvider: { request: 50 },
    }),
  );

  for (const [what, answer] of faults) {
    it(`${what} at the start or end of a sign-in is reported, doesn't affect other users, and works again after it recovers`, async () => {
      const { provider, url } = harness;
      provider.intercept = (_path, req, res) => {
        answer(req, res);
        return true;
      };
      expect(await start(harness)).to.equal('/?sign-in=unreachable');
      expect((await ask('GET', `${url}/console/sign-in`)).json).to.deep.include({ password: true });
      expect(await signIn(url, 'ada@example.com', password)).to.contain('callkey_session_');
      provider.intercept = (path, req, res) => {
        if (path !== '/token') return false;
        answer(req, res);
        return true;
      };
      expect(await signInWithProvider(harness)).to.equal('unreachable');
      expect(provider.requests).not.to.include('/elsewhere');
      provider.intercept = () => false;
      expect(await signInWithProvider(harness)).to.equal('done');
    });
  }

  it("has a different issuer than configured isn't used", async () => {
    harness.provider.intercept = (_path, _req, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify({ issuer: 'https://login.example.org', authorization_endpoint: 'https://login.example.org/auth' }));
      return true;
    };
    expect(await start(harness)).to.equal('/?sign-in=unreachable');
    const failure = failures(harness.core.log).at(-1);
    expect(failure).to.include({ level: 'warn' });
    expect(JSON.stringify(failure)).to.match(/issuer/);
  });

  it("never responds doesn't keep anyone waiting forever", async function () {
    this.timeout(lessThanOwnLimit);
    harness.provider.intercept = () => true;
    expect(await start(impatient, harness.url)).to.equal('/?sign-in=unreachable');
  });

  it("sends its response byte by byte doesn't keep anyone waiting forever", async function () {
    this.timeout(lessThanOwnLimit);
    harness.provider.intercept = (_path, _req, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json' });
      const sending = setInterval(() => res.write(' '), 5);
      res.on('close', () => clearInterval(sending));
      return true;
    };
    expect(await start(impatient, harness.url)).to.equal('/?sign-in=unreachable');
  });
});

// Each test has a new core, which knows nothing about the provider, has logged nothing, and never begins another interval.
describe('many sign-ins with a provider', () => {
  const harness = openForEach(() => openWithProvider({ identityProvider: { logInterval: Number.POSITIVE_INFINITY } }));

  it("don't fill the log if it's down", async () => {
    harness.provider.intercept = (_path, req) => {
      req.socket.destroy();
      return true;
    };
    for (let n = 0; n < 30; n++) expect(await start(harness)).to.equal('/?sign-in=unreachable');
    expect(failures(harness.core.log).length).to.be.within(1, 20);
    const metrics = await ask('GET', `${harness.core.managementUrl}/metrics`);
    expect(metrics.text).to.match(/callkey_provider_sign_ins_total\{result="unreachable"\} 30$/m);
  });

  it("with made-up callbacks neither fill the log nor hide the provider's failures", async () => {
    const attacker = new TestBrowser();
    const callback = await goToProvider(harness, attacker);
    const cookie = attacker.cookie(harness.url);
    for (let n = 0; n < 30; n++) {
      attacker.plant(harness.url, cookie);
      expect(await finishSignIn(attacker, callback.replace('iss=', 'iss=x'))).to.equal('failed');
    }
    const errors = () => failures(harness.core.log).map(({ error }) => error);
    expect(errors()).to.have.length(20);
    harness.provider.forgery = { signature: 'stranger' };
    expect(await signInWithProvider(harness)).to.equal('failed');
    expect([...new Set(errors())]).to.have.length(2);
  });

  it('ask only once for its discovery document if they start at the same time', async () => {
    await Promise.all(Array.from({ length: 10 }, () => start(harness)));
    expect(harness.provider.requests.filter((path) => path.startsWith('/.well-known/'))).to.have.length(1);
  });
});

describe('without a provider', () => {
  const harness = openOnce(() => openCore());

  it('the paths for signing in with one respond like any unknown path', async () => {
    const unknown = await ask('GET', `${harness.core.url}/nowhere`);
    const paths = ['/console/oidc', '/console/oidc/callback', '/console/oidc/sign-out', '/console/oidc/session'];
    for (const method of ['GET', 'POST'])
      for (const path of paths) {
        const { status, text } = await ask(method, `${harness.core.url}${path}`, { headers: { 'Sec-Fetch-Site': 'cross-site' } });
        expect({ status, text }, `${method} ${path}`).to.deep.equal({ status: 401, text: unknown.text });
      }
    expect((await ask('GET', `${harness.core.url}/console/sign-in`)).json).to.deep.equal({ password: true, oidc: null });
  });
});
