import { expect } from 'chai';
import { sessionSchema } from '#contract/console/session.ts';
import { operator } from '../../../core/domain/audit/audit.ts';
import { createUser, disableUser } from '../../../core/domain/directory/users.ts';
import { startCoreHere } from '../../support/core.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { ask, textAt } from '../../support/http.ts';
import {
  ada,
  type Forgery,
  finishSignIn,
  goToProvider,
  openWithProvider,
  type Person,
  providerSuite,
  signInWithProvider,
  TestBrowser,
} from '../../support/identity-provider.ts';
import { enroll, password, signIn, signInFirst } from '../../support/tenants.ts';

describe('signing in with the provider', () => {
  onEachDatabase((kind) => {
    const at = providerSuite(kind);
    const { session, links, emailIn } = at;

    it('links the user by email address the first time, and then knows them by subject', async () => {
      const browser = new TestBrowser();
      expect(await signInWithProvider(at.harness, browser)).to.equal('done');
      const view = sessionSchema.parse((await session(browser)).json);
      expect([view.viewer.email, view.signedInWith]).to.deep.equal(['ada@example.com', 'Example Corp']);
      const again = new TestBrowser();
      at.harness.provider.person = { ...ada, email: 'stan@example.com', isVerified: true };
      expect(await signInWithProvider(at.harness, again)).to.equal('done');
      expect(await emailIn(again)).to.equal('ada@example.com');
      const linked = await at.harness.direct.storage.database.read('audit_events').where({ action: 'user.linked' });
      expect(linked.map(({ subject_name, address }) => [subject_name, address])).to.deep.equal([['Ada Account', '127.0.0.1']]);
      const [link] = await links().list();
      expect(link).to.deep.include({ email: 'ada@example.com', issuer: at.harness.provider.issuer, subject: ada.subject });
    });

    describe('for the first time ends what someone else may have proved:', () => {
      let victims = 0;
      /** Has an administrator create a user for the person who's at the provider. */
      const make = async () => {
        const { url } = at.harness;
        const cookie = await signIn(url, 'stan@example.com');
        const email = `victim-${++victims}@example.com`;
        const made = await ask('POST', `${url}/console/users`, { cookie, body: { email, name: 'Victim', userType: 'staff' } });
        at.harness.provider.person = { subject: email, email, isVerified: true };
        const oneTime = textAt(made, 'password');
        const isRight = async (attempt: string) =>
          (await ask('POST', `${url}/console/session`, { body: { email, password: attempt } })).status !== 401;
        return { email, oneTime, isRight };
      };
      const isOpen = async (cookie: string) => (await ask('GET', `${at.harness.url}/console/session`, { cookie })).status === 200;

      it('a password that an administrator has handed out, its sessions and its second factor', async () => {
        const { email, oneTime, isRight } = await make();
        const cookie = await signInFirst(at.harness.url, email, oneTime);
        await enroll(at.harness.url, cookie, at.clock);
        const browser = new TestBrowser();
        expect(await signInWithProvider(at.harness, browser)).to.equal('done');
        expect([await isOpen(cookie), await isRight(password), await isRight(oneTime)]).to.deep.equal([false, false, false]);
        const view = sessionSchema.parse((await session(browser)).json);
        expect([view.viewer.email, view.justLinked, view.secondFactor]).to.deep.equal([email, true, false]);
        at.clock.advance({ seconds: 1 });
        expect(await signInWithProvider(at.harness, browser)).to.equal('done');
        expect(sessionSchema.parse((await session(browser)).json).justLinked).to.equal(undefined);
      });

      it("a one-time password that wasn't used yet", async () => {
        const { oneTime, isRight } = await make();
        expect(await signInWithProvider(at.harness)).to.equal('done');
        expect(await isRight(oneTime)).to.equal(false);
      });

      it('a one-time password, even if it was entered in the same browser', async () => {
        const { email, oneTime, isRight } = await make();
        const browser = new TestBrowser();
        await browser.send('POST', `${at.harness.url}/console/session`, { email, password: oneTime });
        expect(await signInWithProvider(at.harness, browser)).to.equal('done');
        expect(await isRight(oneTime)).to.equal(false);
      });

      it('only the sessions, if the person has signed in with the password in the same browser', async () => {
        const { email, oneTime, isRight } = await make();
        const browser = new TestBrowser();
        const { url } = at.harness;
        await browser.send('POST', `${url}/console/session`, { email, password: oneTime });
        await browser.send('POST', `${url}/console/password`, { newPassword: password });
        const cookie = await signIn(url, email);
        expect(await signInWithProvider(at.harness, browser)).to.equal('done');
        expect([await isOpen(cookie), await isRight(password)]).to.deep.equal([false, true]);
      });

      it('only the sessions, if the operator has set the password that the user chose', async () => {
        const cookie = await signIn(at.harness.url, 'ada@example.com');
        expect(await signInWithProvider(at.harness)).to.equal('done');
        expect(await isOpen(cookie)).to.equal(false);
        await signIn(at.harness.url, 'ada@example.com');
      });
    });

    const withoutAddress: Forgery = { claims: ({ email: _, email_verified: __, ...rest }) => rest };

    it('asks for the email address at the userinfo endpoint if the ID token lacks it', async () => {
      at.harness.provider.forgery = withoutAddress;
      expect(await signInWithProvider(at.harness)).to.equal('done');
      expect(at.harness.provider.requests.at(-1)).to.equal('/me');
    });

    it('believes the userinfo endpoint only about the person whom the ID token names', async () => {
      at.harness.provider.forgery = withoutAddress;
      at.harness.provider.intercept = (path, _req, res) => {
        if (path !== '/me') return false;
        res.writeHead(200, { 'Content-Type': 'application/json' });
        res.end(JSON.stringify({ sub: 'someone-else', email: 'stan@example.com', email_verified: true }));
        return true;
      };
      expect(await signInWithProvider(at.harness)).to.equal('failed');
    });

    it('starts a new session, whatever session the browser had before', async () => {
      const attacker = await signIn(at.harness.url, 'oda@example.com');
      const browser = new TestBrowser();
      browser.plant(at.harness.url, attacker);
      expect(await signInWithProvider(at.harness, browser)).to.equal('done');
      expect(await emailIn(browser)).to.equal('ada@example.com');
      expect((await ask('GET', `${at.harness.url}/console/session`, { cookie: attacker })).status).to.equal(401);
    });

    describe('refuses a person', () => {
      const refused: [string, Person, string][] = [
        ["whose email address isn't verified", { ...ada, isVerified: false }, 'session.refused-unverified Ada Account'],
        [
          "whose provider doesn't say whether the email address is verified",
          { subject: 'x', email: 'ada@example.com' },
          'session.refused-unverified Ada Account',
        ],
        ['without an email address', { subject: 'x' }, 'session.refused-unverified '],
        ['whose email address has the Kelvin sign for a k', { ...ada, email: 'nic\u212a@example.com' }, 'session.refused-unverified '],
        ['whose email address no user has', { ...ada, email: 'eve@example.com' }, 'session.refused-unknown eve@example.com'],
        [
          'whose email address has letters in its domain',
          { ...ada, email: 'eve@münchen.example' },
          'session.refused-unknown eve@münchen.example',
        ],
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
          // This writes the events that the core has collected.
          await core.close();
          const events = await storage.database.read('audit_events').where('action', 'like', 'session.refused-%').orderBy('id');
          const recorded = events.map(({ action, subject_name }) => `${action} ${subject_name}`);
          expect([...new Set(recorded)].toSorted()).to.deep.equal([...new Set(refused.map(([, , event]) => event))].toSorted());
          // Log lines don't name people.
          expect(core.log.some((line) => JSON.stringify(line).includes('@example.com'))).to.equal(false);
        } finally {
          await own.close();
        }
      });

      it('whose user is linked to another person', async () => {
        expect(await signInWithProvider(at.harness)).to.equal('done');
        at.harness.provider.person = { ...ada, subject: 'someone-with-the-same-address' };
        expect(await signInWithProvider(at.harness)).to.equal('failed');
        expect((await links().list()).map(({ subject }) => subject)).to.deep.equal([ada.subject]);
      });
    });

    it('links only one of two people with the same email address who sign in concurrently', async () => {
      const browsers = [new TestBrowser(), new TestBrowser()];
      const callbacks: string[] = [];
      for (const [index, browser] of browsers.entries()) {
        at.harness.provider.person = { ...ada, subject: `twin-${index}` };
        callbacks.push(await goToProvider(at.harness, browser));
      }
      const results = await Promise.all(browsers.map((browser, index) => finishSignIn(browser, callbacks[index] ?? '')));
      expect(results.toSorted()).to.deep.equal(['done', 'failed']);
    });

    it('finds a user by an address in capitals and another Unicode form', async () => {
      const input = { email: 'jos\u00e9@example.com', name: 'Jos\u00e9', userType: 'staff', accountId: null, partnerId: null } as const;
      await createUser(at.harness.direct.ports, operator, input, password);
      at.harness.provider.person = { subject: 'jos\u00e9-there', email: 'JOSE\u0301@Example.COM', isVerified: true };
      const browser = new TestBrowser();
      expect(await signInWithProvider(at.harness, browser)).to.equal('done');
      expect(await emailIn(browser)).to.equal(input.email);
    });

    it("with OIDC_EMAIL=trusted, accepts an address that the provider hasn't verified", async () => {
      const trusting = await openWithProvider({ kind, environment: { OIDC_EMAIL: 'trusted' } });
      try {
        trusting.provider.person = { ...ada, isVerified: false };
        expect(await signInWithProvider(trusting)).to.equal('done');
      } finally {
        await trusting.close();
      }
    });

    it('with SECOND_FACTOR=required, asks for none, because the provider has its own', async () => {
      const { database, provider, url } = at.harness;
      const browser = new TestBrowser();
      expect(await signInWithProvider(at.harness, browser)).to.equal('done');
      const environment = { ...provider.environment(url), SECOND_FACTOR: 'required' };
      const strict = await startCoreHere(database, { environment, clock: at.clock });
      const { status } = await ask('GET', `${strict.url}/console/api-keys`, { cookie: browser.cookie(url) });
      await strict.close();
      expect(status).to.equal(200);
    });

    for (const [what, change, expected] of [
      ['nothing changes', {}, [200, 200]],
      ['passwords are turned off', { PASSWORD_SIGN_IN: 'off' }, [200, 401]],
      ['the provider is replaced', { OIDC_ISSUER: 'https://login.example.org' }, [401, 200]],
      ['the provider is removed', null, [401, 200]],
    ] as const) {
      it(`keeps only the sessions whose way of signing in is still available if ${what}`, async () => {
        const { database, provider, url } = at.harness;
        const browser = new TestBrowser();
        expect(await signInWithProvider(at.harness, browser)).to.equal('done');
        const cookies = [browser.cookie(url), await signIn(url, 'stan@example.com')];
        const core = await startCoreHere(database, {
          environment: change ? { ...provider.environment(url), ...change } : {},
          clock: at.clock,
        });
        const answers = await Promise.all(cookies.map((cookie) => ask('GET', `${core.url}/console/session`, { cookie })));
        await core.close();
        expect(answers.map(({ status }) => status)).to.deep.equal(expected);
      });
    }
  });
});
