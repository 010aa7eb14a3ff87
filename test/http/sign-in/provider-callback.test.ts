import { expect } from 'chai';
import { startCoreHere } from '../../support/core.ts';
import { ask, readCode, readSetCookies } from '../../support/http.ts';
import {
  ada,
  type Forgery,
  finishSignIn,
  goToProvider,
  providerSuite,
  signInWithProvider,
  TestBrowser,
} from '../../support/identity-provider.ts';

describe('signing in with the provider', () => {
  const at = providerSuite();
  const { session } = at;

  it('keeps the state in a signed, lax cookie for its own path and ten minutes', async () => {
    const { headers } = await new TestBrowser().open(`${at.harness.url}/console/oidc`);
    const [cookie = '', signature = ''] = [headers['set-cookie'] ?? []].flat();
    expect(cookie).to.match(/^callkey_oidc_[0-9a-f]{8}_[0-9a-f]{8}=[\w-]+; path=\/console\/oidc; expires=[^;]+; samesite=lax; httponly$/i);
    expect(signature).to.match(/^callkey_oidc_[0-9a-f]{8}_[0-9a-f]{8}\.sig=/);
    const expires = Date.parse(/expires=([^;]+)/.exec(cookie)?.[1] ?? '');
    expect(Math.abs(expires - Date.now() - 600_000)).to.be.lessThan(60_000);
  });

  it('keeps the state in a Secure cookie with the __Secure- prefix over HTTPS, because its path rules __Host- out', async () => {
    const { database, provider } = at.harness;
    const environment = provider.environment('https://calls.example.com/voice');
    const core = await startCoreHere(database, { environment, clock: at.clock });
    try {
      const cookies = readSetCookies(await new TestBrowser().open(`${core.url}/console/oidc`));
      expect(cookies).to.have.length(2);
      for (const cookie of cookies) expect(cookie).to.match(/^__Secure-callkey_oidc_.*; path=\/voice\/console\/oidc; .*; secure/i);
    } finally {
      await core.close();
    }
  });

  describe('refuses an ID token', () => {
    const soon = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;
    const forgeries: [string, Forgery][] = [
      ['with another nonce', { claims: (claims) => ({ ...claims, nonce: 'another' }) }],
      ['without a nonce', { claims: ({ nonce: _, ...claims }) => claims }],
      ['of another issuer', { claims: (claims) => ({ ...claims, iss: 'https://login.example.org' }) }],
      ['for another audience', { claims: (claims) => ({ ...claims, aud: 'another-client' }) }],
      ['for several audiences', { claims: (claims) => ({ ...claims, aud: ['callkey', 'another-client'] }) }],
      ['issued to another client', { claims: (claims) => ({ ...claims, azp: 'another-client' }) }],
      ['that has expired', { claims: (claims) => ({ ...claims, iat: soon(-4_000), exp: soon(-400) }) }],
      ['that is not valid yet', { claims: (claims) => ({ ...claims, nbf: soon(400) }) }],
      ['without a subject', { claims: ({ sub: _, ...claims }) => claims }],
      ['with an empty subject', { claims: (claims) => ({ ...claims, sub: '' }) }],
      ['with a number as subject', { claims: (claims) => ({ ...claims, sub: 7 }) }],
      [
        'with the text "false" as the verification of the address',
        { claims: (claims) => ({ ...claims, email: 'ada@example.com', email_verified: 'false' }) },
      ],
      ['signed by a stranger', { signature: 'stranger' }],
      ['that is not signed', { signature: 'none' }],
      ["signed with the client's secret", { signature: 'HS256' }],
    ];
    for (const [which, forgery] of forgeries) {
      it(which, async () => {
        at.harness.provider.forgery = forgery;
        const browser = new TestBrowser();
        expect(await signInWithProvider(at.harness, browser)).to.equal('failed');
        expect((await session(browser)).status).to.equal(401);
      });
    }
  });

  const changed = (callback: string, name: string, value: string | null) => {
    const url = new URL(callback);
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
    return url.href;
  };

  describe('refuses a callback', () => {
    const counted = () => at.harness.direct.storage.database.read('sign_in_attempts').where('key', 'like', 'provider:%');
    for (const [which, name, value, result] of [
      ['with another state', 'state', 'another', 'expired'],
      ['without a state', 'state', null, 'expired'],
      ['from another issuer', 'iss', 'https://login.example.org', 'failed'],
      ['without a code', 'code', null, 'failed'],
      ["with the provider's error", 'error', 'server_error', 'failed'],
    ] as const) {
      it(`${which}, but doesn't count it, because it doesn't reach the provider`, async () => {
        const browser = new TestBrowser();
        const callback = await goToProvider(at.harness, browser);
        const asked = at.harness.provider.requests.length;
        expect(await finishSignIn(browser, changed(callback, name, value))).to.equal(result);
        expect((await session(browser)).status).to.equal(401);
        expect([at.harness.provider.requests.length, await counted()]).to.deep.equal([asked, []]);
      });
    }

    it('with a made-up code, and counts it', async () => {
      const browser = new TestBrowser();
      const callback = await goToProvider(at.harness, browser);
      expect(await finishSignIn(browser, changed(callback, 'code', 'invented'))).to.equal('failed');
      expect((await session(browser)).status).to.equal(401);
      expect((await counted()).map(({ attempts }) => attempts)).to.deep.equal([1]);
    });

    it("in a browser that didn't start the sign-in, such as one that another site redirected", async () => {
      const attacker = new TestBrowser();
      const callback = await goToProvider(at.harness, attacker);
      const victim = new TestBrowser();
      expect(await finishSignIn(victim, callback)).to.equal('expired');
      // The attack fails even if the victim is in the middle of their own sign-in.
      await goToProvider(at.harness, victim);
      expect(await finishSignIn(victim, callback)).to.equal('expired');
      expect((await session(victim)).status).to.equal(401);
    });

    it("that's repeated, even with the original cookie", async () => {
      const browser = new TestBrowser();
      const callback = await goToProvider(at.harness, browser);
      const copy = new TestBrowser();
      copy.plant(at.harness.url, browser.cookie(at.harness.url));
      expect(await finishSignIn(browser, callback)).to.equal('done');
      expect(await finishSignIn(browser, callback)).to.equal('expired');
      const asked = at.harness.provider.requests.length;
      expect(await finishSignIn(copy, callback)).to.equal('expired');
      expect(at.harness.provider.requests).to.have.length(asked);
    });

    it('with a code that the provider issued to another client', async () => {
      const { provider, url } = at.harness;
      const browser = new TestBrowser();
      const start = await browser.open(`${url}/console/oidc`);
      const asked = new URL(String(start.headers['location']));
      asked.searchParams.set('client_id', 'another-client');
      const callback = await browser.follow(asked.href, `${url}/console/oidc/callback`);
      expect(provider.requests.at(-1)).not.to.equal('/token');
      expect(await finishSignIn(browser, callback)).to.equal('failed');
    });

    it('after ten minutes', async () => {
      const browser = new TestBrowser();
      const callback = await goToProvider(at.harness, browser);
      at.clock.advance({ minutes: 10, seconds: 1 });
      expect(await finishSignIn(browser, callback)).to.equal('expired');
    });

    it('whose cookie was changed', async () => {
      const browser = new TestBrowser();
      const callback = await goToProvider(at.harness, browser);
      const [pair = ''] = browser.cookie(at.harness.url).split('; ');
      const flow = JSON.parse(Buffer.from(pair.slice(pair.indexOf('=') + 1), 'base64url').toString());
      const forged = Buffer.from(JSON.stringify({ ...flow, expiresAt: flow.expiresAt + 1 })).toString('base64url');
      browser.plant(at.harness.url, `${pair.slice(0, pair.indexOf('='))}=${forged}`);
      expect(await finishSignIn(browser, callback)).to.equal('expired');
    });

    it('whose user cancelled, and says so to the page', async () => {
      const browser = new TestBrowser();
      const callback = new URL(await goToProvider(at.harness, browser));
      callback.searchParams.delete('code');
      callback.searchParams.set('error', 'access_denied');
      expect(await finishSignIn(browser, callback.href)).to.equal('cancelled');
    });
  });

  it('finishes in each of several tabs, in any order, and keeps the newest five', async () => {
    const browser = new TestBrowser();
    const callbacks: string[] = [];
    for (let tab = 0; tab < 6; tab++) {
      const { headers } = await browser.open(`${at.harness.url}/console/oidc`);
      // The test's provider ends an earlier sign-in when the same browser signs in there again.
      callbacks.push(await new TestBrowser().follow(String(headers['location']), `${at.harness.url}/console/oidc/callback`));
      at.clock.advance({ seconds: 1 });
    }
    const results: string[] = [];
    for (const tab of [4, 5, 0, 1, 3, 2, 2]) results.push(await finishSignIn(browser, callbacks[tab] ?? ''));
    expect(results).to.deep.equal(['done', 'done', 'expired', 'done', 'done', 'done', 'expired']);
    expect(browser.cookie(at.harness.url)).not.to.match(/callkey_oidc_\w+=/);
  });

  it('refuses to start from another site', async () => {
    const answer = await new TestBrowser().open(`${at.harness.url}/console/oidc`, { 'Sec-Fetch-Site': 'cross-site' });
    expect([answer.status, readCode(answer)]).to.deep.equal([403, 'cross-site']);
  });

  describe('throttles an IP address', () => {
    it('after a hundred failures, but not after successes', async () => {
      const { write } = at.harness.direct.storage.database;
      expect(await signInWithProvider(at.harness)).to.equal('done');
      expect(await write('sign_in_attempts').where('key', 'like', 'provider:%').where('attempts', '>', 0)).to.deep.equal([]);
      at.harness.provider.person = { ...ada, email: 'eve@example.com', subject: 'eve' };
      expect(await signInWithProvider(at.harness)).to.equal('failed');
      await write('sign_in_attempts').where('key', 'like', 'provider:%').update({ attempts: 100 });
      at.harness.provider.person = ada;
      const asked = at.harness.provider.requests.length;
      const browser = new TestBrowser();
      const callback = await goToProvider(at.harness, browser);
      expect(await finishSignIn(browser, callback)).to.equal('throttled');
      expect(at.harness.provider.requests.slice(asked)).not.to.include('/token');
    });

    it('but not a browser in which the user has signed in before, until it has failed too often itself', async () => {
      const counters = () => at.harness.direct.storage.database.write('sign_in_attempts').where('key', 'like', 'provider:%');
      const known = new TestBrowser();
      /** Signs in as a browser does, which sends strict cookies to the start of the sign-in, but not to the callback. */
      async function signInStrictly(): Promise<string> {
        const callback = await goToProvider(at.harness, known);
        const returning = new TestBrowser();
        const lax = known
          .cookie(at.harness.url)
          .split('; ')
          .filter((pair) => pair.startsWith('callkey_oidc'));
        returning.plant(at.harness.url, lax.join('; '));
        return finishSignIn(returning, callback);
      }
      expect(await signInWithProvider(at.harness, known)).to.equal('done');
      at.harness.provider.forgery = { signature: 'stranger' };
      expect(await signInWithProvider(at.harness)).to.equal('failed');
      await counters().update({ attempts: 100 });
      at.harness.provider.forgery = {};
      expect(await signInWithProvider(at.harness)).to.equal('throttled');
      expect(await signInStrictly()).to.equal('done');
      at.harness.provider.forgery = { signature: 'stranger' };
      expect(await signInStrictly()).to.equal('failed');
      await counters().update({ attempts: 100 });
      expect(await signInStrictly()).to.equal('throttled');
    });
  });

  describe('works', () => {
    it('right after the provider has replaced its keys', async () => {
      expect(await signInWithProvider(at.harness)).to.equal('done');
      at.harness.provider.rotateKeys();
      expect(await signInWithProvider(at.harness)).to.equal('done');
    });

    for (const minutes of [5, -5]) {
      it(`while the provider's clock is ${Math.abs(minutes)} minutes ${minutes > 0 ? 'behind' : 'ahead'}`, async () => {
        at.clock.advance({ minutes, seconds: minutes > 0 ? -5 : 5 });
        // The provider's tokens follow the machine's clock, which doesn't stand still.
        const ahead = minutes > 0 ? 0 : at.clock.now() / 1_000 + 295;
        at.harness.provider.forgery = { claims: (claims) => ({ ...claims, nbf: ahead || claims['iat'] }) };
        expect(await signInWithProvider(at.harness)).to.equal('done');
      });
    }
  });

  for (const [what, path, end] of [
    ['a slash at its end', '', '/'],
    ['a path', '/calls', ''],
    ['a path and slashes', '/voice/calls', '//'],
  ] as const) {
    it(`sends browsers to the right addresses if PUBLIC_URL has ${what}`, async () => {
      const { database, provider, url } = at.harness;
      const publicUrl = `${url}${path}`;
      const core = await startCoreHere(database, {
        environment: { ...provider.environment(url), PUBLIC_URL: publicUrl + end },
        clock: at.clock,
      });
      try {
        const { headers } = await new TestBrowser().open(`${core.url}/console/oidc`);
        expect(new URL(String(headers['location'])).searchParams.get('redirect_uri')).to.equal(`${publicUrl}/console/oidc/callback`);
        expect(String(headers['set-cookie'])).to.include(`path=${path}/console/oidc;`);
        const callback = await new TestBrowser().open(`${core.url}/console/oidc/callback`);
        expect(callback.headers['location']).to.equal(`${publicUrl}/?sign-in=expired`);
        expect((await ask('GET', `${core.url}/console/sign-in`)).json['oidc']).to.deep.include({ url: `${publicUrl}/console/oidc` });
      } finally {
        await core.close();
      }
    });
  }
});
