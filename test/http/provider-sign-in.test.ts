import { hash } from 'node:crypto';
import { expect } from 'chai';
import { sessionSchema } from '#contract/console/session.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { disableUser } from '../../core/domain/directory/users.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask, readCode, textAt } from '../support/http.ts';
import type { Forgery, Person } from '../support/oidc-provider.ts';
import { finishSignIn, goToProvider, openWithProvider, type ProviderHarness, signInWithProvider } from '../support/provider-harness.ts';
import { password, signIn } from '../support/tenants.ts';
import { TestBrowser } from '../support/test-browser.ts';

const ada: Person = { subject: 'ada-at-the-provider', email: 'ada@example.com', isVerified: true };

describe('signing in with the provider', () => {
  onEachDatabase((kind) => {
    let harness: ProviderHarness;
    let clock: FakeClock;
    before(async () => {
      clock = fakeClock(new Date().toISOString());
      harness = await openWithProvider({ kind, clock });
    });
    after(() => harness.close());

    const links = () => harness.direct.ports.stores.links;
    beforeEach(() => {
      clock.set(new Date().toISOString());
      Object.assign(harness.provider, { person: ada, forgery: {}, intercept: () => false });
    });
    afterEach(async () => {
      const { write } = harness.direct.storage.database;
      for (const table of ['oidc_links', 'sessions', 'sign_in_attempts'] as const) await write(table).delete();
    });

    const session = (browser: TestBrowser) => browser.open(`${harness.url}/console/session`);
    const emailIn = async (browser: TestBrowser) => sessionSchema.parse((await session(browser)).json).viewer.email;

    it('links the user by email address the first time, and then knows them by subject', async () => {
      const browser = new TestBrowser();
      expect(await signInWithProvider(harness, browser)).to.equal('done');
      const view = sessionSchema.parse((await session(browser)).json);
      expect([view.viewer.email, view.signedInWith]).to.deep.equal(['ada@example.com', 'Example Corp']);
      const again = new TestBrowser();
      harness.provider.person = { ...ada, email: 'stan@example.com', isVerified: true };
      expect(await signInWithProvider(harness, again)).to.equal('done');
      expect(await emailIn(again)).to.equal('ada@example.com');
      const [link] = await links().list();
      expect(link).to.deep.include({ email: 'ada@example.com', issuer: harness.provider.issuer, subject: ada.subject });
    });

    it('asks for the email address at the userinfo endpoint if the ID token lacks it', async () => {
      harness.provider.forgery = { claims: ({ email: _, email_verified: __, ...rest }) => rest };
      expect(await signInWithProvider(harness)).to.equal('done');
      expect(harness.provider.requests.at(-1)).to.equal('/me');
    });

    it('starts a new session, whatever session the browser had before', async () => {
      const attacker = await signIn(harness.url, 'oda@example.com');
      const browser = new TestBrowser();
      browser.plant(harness.url, attacker);
      expect(await signInWithProvider(harness, browser)).to.equal('done');
      expect(await emailIn(browser)).to.equal('ada@example.com');
      expect((await ask('GET', `${harness.url}/console/session`, { cookie: attacker })).status).to.equal(401);
    });

    it('keeps the state in a signed, lax cookie for its own path and ten minutes', async () => {
      const { headers } = await new TestBrowser().open(`${harness.url}/console/oidc`);
      const [cookie = '', signature = ''] = [headers['set-cookie'] ?? []].flat();
      expect(cookie).to.match(/^callkey_oidc=[\w-]+; path=\/console\/oidc; expires=[^;]+; samesite=lax; httponly$/i);
      expect(signature).to.match(/^callkey_oidc\.sig=/);
      const expires = Date.parse(/expires=([^;]+)/.exec(cookie)?.[1] ?? '');
      expect(Math.abs(expires - Date.now() - 600_000)).to.be.lessThan(60_000);
    });

    describe('refuses a person', () => {
      const refused: [string, Person, string][] = [
        ['whose email address is not verified', { ...ada, isVerified: false }, 'session.refused-unverified Ada Account'],
        ['whose provider does not say whether it is', { subject: 'x', email: 'ada@example.com' }, 'session.refused-unverified Ada Account'],
        ['without an email address', { subject: 'x' }, 'session.refused-unverified '],
        ['whose email address has the Kelvin sign for a k', { ...ada, email: 'nic\u212a@example.com' }, 'session.refused-unverified '],
        ['whose email address no user has', { ...ada, email: 'eve@example.com' }, 'session.refused-unknown eve@example.com'],
        ['whose user is disabled', { ...ada, email: 'sue@example.com' }, 'session.refused-disabled Sue Sibling'],
      ];
      it('with the same response for every reason, and records the reason', async () => {
        const own = await openWithProvider({ kind });
        const { direct, provider, core, tenants } = own;
        const { ports, storage } = direct;
        try {
          await disableUser(ports, operator, tenants.users.sibling);
          for (const [who, person] of refused) {
            provider.person = person;
            expect(await signInWithProvider(own), who).to.equal('failed');
          }
          expect(await ports.stores.links.list()).to.deep.equal([]);
          // This writes the events that the core has kept to write them together.
          await core.close();
          const events = await storage.database.read('audit_events').where('action', 'like', 'session.refused-%').orderBy('id');
          const recorded = events.map(({ action, subject_name }) => `${action} ${subject_name}`);
          expect(recorded.toSorted()).to.deep.equal([...new Set(refused.map(([, , event]) => event))].toSorted());
          // Log lines don't name people.
          expect(core.log.some((line) => JSON.stringify(line).includes('@example.com'))).to.equal(false);
        } finally {
          await own.close();
        }
      });

      it('whose user is linked with another person', async () => {
        expect(await signInWithProvider(harness)).to.equal('done');
        harness.provider.person = { ...ada, subject: 'someone-with-the-same-address' };
        expect(await signInWithProvider(harness)).to.equal('failed');
        expect((await links().list()).map(({ subject }) => subject)).to.deep.equal([ada.subject]);
      });
    });

    it('links only one of two people with the same email address who sign in at the same moment', async () => {
      const browsers = [new TestBrowser(), new TestBrowser()];
      const callbacks: string[] = [];
      for (const [index, browser] of browsers.entries()) {
        harness.provider.person = { ...ada, subject: `twin-${index}` };
        callbacks.push(await goToProvider(harness, browser));
      }
      const results = await Promise.all(browsers.map((browser, index) => finishSignIn(browser, callbacks[index] ?? '')));
      expect(results.toSorted()).to.deep.equal(['done', 'failed']);
    });

    for (const email of ['ADA@Example.COM', ' ada@example.com ']) {
      it(`finds the user of ${JSON.stringify(email)}`, async () => {
        harness.provider.person = { ...ada, email };
        expect(await signInWithProvider(harness)).to.equal('done');
      });
    }

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
        ['signed by a stranger', { signature: 'stranger' }],
        ['that is not signed', { signature: 'none' }],
        ["signed with the client's secret", { signature: 'HS256' }],
      ];
      for (const [which, forgery] of forgeries) {
        it(which, async () => {
          harness.provider.forgery = forgery;
          const browser = new TestBrowser();
          expect(await signInWithProvider(harness, browser)).to.equal('failed');
          expect((await session(browser)).status).to.equal(401);
        });
      }
    });

    describe('refuses a callback', () => {
      const changed = (callback: string, name: string, value: string | null) => {
        const url = new URL(callback);
        if (value === null) url.searchParams.delete(name);
        else url.searchParams.set(name, value);
        return url.href;
      };
      for (const [which, name, value, result] of [
        ['with another state', 'state', 'another', 'failed'],
        ['without a state', 'state', null, 'failed'],
        ['from another issuer', 'iss', 'https://login.example.org', 'failed'],
        ['with an invented code', 'code', 'invented', 'failed'],
        ['without a code', 'code', null, 'failed'],
      ] as const) {
        it(which, async () => {
          const browser = new TestBrowser();
          const callback = await goToProvider(harness, browser);
          expect(await finishSignIn(browser, changed(callback, name, value))).to.equal(result);
          expect((await session(browser)).status).to.equal(401);
        });
      }

      it("in a browser that didn't start it, such as one that another site sends there", async () => {
        const attacker = new TestBrowser();
        const callback = await goToProvider(harness, attacker);
        const victim = new TestBrowser();
        expect(await finishSignIn(victim, callback)).to.equal('expired');
        // Not even in the middle of the victim's own sign-in.
        await goToProvider(harness, victim);
        expect(await finishSignIn(victim, callback)).to.equal('failed');
        expect((await session(victim)).status).to.equal(401);
      });

      it('that is repeated, even with the cookie of the first time', async () => {
        const browser = new TestBrowser();
        const callback = await goToProvider(harness, browser);
        const copy = new TestBrowser();
        copy.plant(harness.url, browser.cookie(harness.url));
        expect(await finishSignIn(browser, callback)).to.equal('done');
        expect(await finishSignIn(browser, callback)).to.equal('expired');
        expect(await finishSignIn(copy, callback)).to.equal('failed');
      });

      it('with a code that the provider issued to another client', async () => {
        const { provider, url } = harness;
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
        const callback = await goToProvider(harness, browser);
        clock.advance({ minutes: 10, seconds: 1 });
        expect(await finishSignIn(browser, callback)).to.equal('expired');
      });

      it('whose cookie was changed', async () => {
        const browser = new TestBrowser();
        const callback = await goToProvider(harness, browser);
        const [pair = ''] = browser.cookie(harness.url).split('; ');
        const flow = JSON.parse(Buffer.from(pair.slice(pair.indexOf('=') + 1), 'base64url').toString());
        const forged = Buffer.from(JSON.stringify({ ...flow, expiresAt: flow.expiresAt + 1 })).toString('base64url');
        browser.plant(harness.url, `callkey_oidc=${forged}`);
        expect(await finishSignIn(browser, callback)).to.equal('expired');
      });

      it('whose user said no, and tells the page', async () => {
        const browser = new TestBrowser();
        const callback = new URL(await goToProvider(harness, browser));
        callback.searchParams.delete('code');
        callback.searchParams.set('error', 'access_denied');
        expect(await finishSignIn(browser, callback.href)).to.equal('cancelled');
      });
    });

    it('refuses to start from another site', async () => {
      const answer = await new TestBrowser().open(`${harness.url}/console/oidc`, { 'Sec-Fetch-Site': 'cross-site' });
      expect([answer.status, readCode(answer)]).to.deep.equal([403, 'cross-site']);
    });

    describe('throttles an address', () => {
      it('after a hundred failures, and not after successes', async () => {
        const { write } = harness.direct.storage.database;
        expect(await signInWithProvider(harness)).to.equal('done');
        expect(await write('sign_in_attempts').where('key', 'like', 'provider:%').where('points', '>', 0)).to.deep.equal([]);
        harness.provider.person = { ...ada, email: 'eve@example.com', subject: 'eve' };
        expect(await signInWithProvider(harness)).to.equal('failed');
        await write('sign_in_attempts').where('key', 'like', 'provider:%').update({ points: 100 });
        harness.provider.person = ada;
        const asked = harness.provider.requests.length;
        const browser = new TestBrowser();
        const callback = await goToProvider(harness, browser);
        expect(await finishSignIn(browser, callback)).to.equal('throttled');
        expect(harness.provider.requests.slice(asked)).not.to.include('/token');
      });
    });

    describe('works', () => {
      it('right after the provider has replaced its keys', async () => {
        expect(await signInWithProvider(harness)).to.equal('done');
        harness.provider.rotateKeys();
        expect(await signInWithProvider(harness)).to.equal('done');
      });

      for (const minutes of [5, -5]) {
        it(`while the provider's clock is ${Math.abs(minutes)} minutes ${minutes > 0 ? 'behind' : 'ahead'}`, async () => {
          clock.advance({ minutes, seconds: minutes > 0 ? -5 : 5 });
          harness.provider.forgery = { claims: (claims) => ({ ...claims, nbf: claims['iat'] }) };
          expect(await signInWithProvider(harness)).to.equal('done');
        });
      }
    });

    describe('in the app', () => {
      const verifier = 'v'.repeat(43);
      const challenge = hash('sha256', verifier, 'base64url');
      const toApp = `?port=4711&challenge=${challenge}`;
      const trade = (code: string, withVerifier = verifier) =>
        ask('POST', `${harness.url}/console/oidc/session`, { body: { code, verifier: withVerifier } });
      async function codeFor(browser = new TestBrowser()): Promise<string> {
        expect(await signInWithProvider(harness, browser, toApp)).to.equal('app');
        const answer = await browser.send('POST', `${harness.url}/console/oidc/hand-over`);
        expect(answer.status, answer.text).to.equal(201);
        const [, code = ''] = /^http:\/\/127\.0\.0\.1:4711\/\?code=([\w-]{43})$/.exec(textAt(answer, 'url')) ?? [];
        return code;
      }

      it('hands over a code that starts a session, once, and signs no one in to the browser', async () => {
        const browser = new TestBrowser();
        const code = await codeFor(browser);
        expect((await session(browser)).status).to.equal(401);
        const answer = await trade(code);
        expect(answer.status, answer.text).to.equal(201);
        expect(sessionSchema.parse(answer.json).viewer.email).to.equal('ada@example.com');
        expect((await trade(code)).status).to.equal(401);
        const rows = await harness.direct.storage.database.read('sign_in_codes');
        expect(rows).to.deep.equal([]);
      });

      it('stores only a digest of the code', async () => {
        const code = await codeFor();
        const rows = await harness.direct.storage.database.read('sign_in_codes');
        expect(JSON.stringify(rows)).not.to.contain(code);
        expect(rows.at(-1)?.digest).to.equal(hash('sha256', code));
      });

      it('refuses the code with another verifier, and then also with the right one', async () => {
        const code = await codeFor();
        expect((await trade(code, 'w'.repeat(43))).status).to.equal(401);
        expect((await trade(code)).status).to.equal(401);
      });

      it('refuses the code after 60 seconds', async () => {
        const code = await codeFor();
        clock.advance({ seconds: 61 });
        expect((await trade(code)).status).to.equal(401);
      });

      it('starts one session if the code is used twice at the same moment', async () => {
        const code = await codeFor();
        const answers = await Promise.all([trade(code), trade(code)]);
        expect(answers.map(({ status }) => status).toSorted()).to.deep.equal([201, 401]);
      });

      it('hands over one code for each confirmation, only to its own page, and within two minutes', async () => {
        const browser = new TestBrowser();
        await codeFor(browser);
        const handOver = (headers = {}) => browser.send('POST', `${harness.url}/console/oidc/hand-over`, undefined, headers);
        expect((await handOver()).status).to.equal(401);
        expect(await signInWithProvider(harness, browser, toApp)).to.equal('app');
        expect(readCode(await handOver({ 'Sec-Fetch-Site': 'cross-site' }))).to.equal('cross-site');
        clock.advance({ minutes: 2, seconds: 1 });
        expect((await handOver()).status).to.equal(401);
      });

      it('refuses the code of a user who was disabled or unlinked in between', async () => {
        const code = await codeFor();
        await harness.direct.storage.database.write('oidc_links').delete();
        expect((await trade(code)).status).to.equal(401);
      });

      for (const query of [
        '?port=4711',
        `?challenge=${challenge}`,
        `?port=80&challenge=${challenge}`,
        '?port=4711&challenge=short',
        '?more=1',
      ]) {
        it(`refuses to start with ${query.slice(0, 30)}`, async () => {
          expect((await new TestBrowser().open(`${harness.url}/console/oidc${query}`)).status).to.equal(400);
        });
      }
    });

    for (const [what, change, expected] of [
      ['nothing changes', {}, [200, 200]],
      ['passwords are turned off', { PASSWORD_SIGN_IN: 'off' }, [200, 401]],
      ['the provider is replaced', { OIDC_ISSUER: 'https://login.example.org' }, [401, 200]],
      ['the provider is removed', null, [401, 200]],
    ] as const) {
      it(`keeps only sessions that could still begin in the same way, if ${what}`, async () => {
        const { database, provider, url } = harness;
        const browser = new TestBrowser();
        expect(await signInWithProvider(harness, browser)).to.equal('done');
        const cookies = [browser.cookie(url), await signIn(url, 'stan@example.com')];
        const core = await startCoreHere(database, { environment: change ? { ...provider.environment(url), ...change } : {}, clock });
        const answers = await Promise.all(cookies.map((cookie) => ask('GET', `${core.url}/console/session`, { cookie })));
        await core.close();
        expect(answers.map(({ status }) => status)).to.deep.equal(expected);
      });
    }

    it('lets out no secret: not in logs, errors, metrics or tables', async () => {
      const { core, direct, provider } = harness;
      const browser = new TestBrowser();
      const callback = await goToProvider(harness, browser);
      const code = new URL(callback).searchParams.get('code') ?? '';
      const [pair = ''] = browser.cookie(harness.url).split('; ');
      const flow = JSON.parse(Buffer.from(pair.slice(pair.indexOf('=') + 1), 'base64url').toString());
      expect(await finishSignIn(browser, callback)).to.equal('done');
      provider.forgery = { signature: 'stranger' };
      expect(await signInWithProvider(harness)).to.equal('failed');
      const metrics = await ask('GET', `${core.managementUrl}/metrics`);
      const tables = ['oidc_links', 'sign_in_codes', 'sessions', 'audit_events', 'users', 'sign_in_attempts'] as const;
      const rows = await Promise.all(tables.map((table) => direct.storage.database.read(table)));
      const everything = JSON.stringify([core.log, metrics.text, rows]);
      const secrets = [
        code,
        flow.state,
        flow.nonce,
        flow.verifier,
        ...provider.secrets,
        password,
        'the secret of the client at the provider',
      ];
      for (const secret of secrets) expect(everything.includes(secret), secret.slice(0, 10)).to.equal(false);
      expect(metrics.text).to.match(/callkey_provider_sign_ins_total\{result="accepted"\} [1-9]/);
      expect(metrics.text).to.match(/callkey_provider_sign_ins_total\{result="refused"\} [1-9]/);
    });
  });
});
