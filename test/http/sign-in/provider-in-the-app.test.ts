import { hash } from 'node:crypto';
import { expect } from 'chai';
import { sessionSchema } from '#contract/console/session.ts';
import { operator } from '../../../core/domain/audit/audit.ts';
import { createUser, deleteUser, disableUser, unlinkUser } from '../../../core/domain/directory/users.ts';
import { onEachDatabase } from '../../support/databases.ts';
import { type Answer, ask, readCode, textAt } from '../../support/http.ts';
import {
  ada,
  finishSignIn,
  goToProvider,
  providerSuite,
  signInForApp,
  signInWithProvider,
  TestBrowser,
} from '../../support/identity-provider.ts';
import { password } from '../../support/tenants.ts';

describe('signing in with the provider', () => {
  onEachDatabase((kind) => {
    const at = providerSuite(kind);
    const { session } = at;

    describe('in the app', () => {
      const verifier = 'v'.repeat(43);
      const challenge = hash('sha256', verifier, 'base64url');
      const toApp = `?port=4711&challenge=${challenge}`;
      const trade = (code: string, withVerifier = verifier) =>
        ask('POST', `${at.harness.url}/console/oidc/session`, { body: { code, verifier: withVerifier } });
      const handOver = (browser: TestBrowser, body: object, headers = {}) =>
        browser.send('POST', `${at.harness.url}/console/oidc/hand-over`, body, headers);
      const readHandedOver = (answer: Answer) => /^http:\/\/127\.0\.0\.1:4711\/\?code=([\w-]{43})$/.exec(textAt(answer, 'url'))?.[1] ?? '';
      async function codeFor(browser = new TestBrowser()): Promise<string> {
        const answer = await handOver(browser, await signInForApp(at.harness, browser, toApp));
        expect(answer.status, answer.text).to.equal(201);
        return readHandedOver(answer);
      }

      it('hands over a code that starts a session, once, and signs no one in to the browser', async () => {
        const browser = new TestBrowser();
        const code = await codeFor(browser);
        expect((await session(browser)).status).to.equal(401);
        const answer = await trade(code);
        expect(answer.status, answer.text).to.equal(201);
        expect(sessionSchema.parse(answer.json).viewer.email).to.equal('ada@example.com');
        expect((await trade(code)).status).to.equal(401);
        const rows = await at.harness.direct.storage.database.read('sign_in_codes');
        expect(rows).to.deep.equal([]);
      });

      it('stores only a digest of the code', async () => {
        const code = await codeFor();
        const rows = await at.harness.direct.storage.database.read('sign_in_codes');
        expect(JSON.stringify(rows)).not.to.contain(code);
        expect(rows.at(-1)?.digest).to.equal(hash('sha256', code));
      });

      it('refuses the code with a wrong verifier, and afterwards even with the right one', async () => {
        const code = await codeFor();
        expect((await trade(code, 'w'.repeat(43))).status).to.equal(401);
        expect((await trade(code)).status).to.equal(401);
      });

      it('refuses the code after 60 seconds', async () => {
        const code = await codeFor();
        at.clock.advance({ seconds: 61 });
        expect((await trade(code)).status).to.equal(401);
      });

      it('accepts the code of a core whose clock is ahead by up to five minutes, but not of one further ahead', async () => {
        for (const [minutes, status] of [
          [5, 201],
          [6, 401],
        ] as const) {
          const code = await codeFor();
          at.clock.advance({ minutes: -minutes });
          expect((await trade(code)).status, `${minutes} minutes`).to.equal(status);
        }
      });

      it('refuses a made-up code without waiting for a turn to write', async () => {
        const { write } = at.harness.direct.storage.database;
        const { status } = await write.transaction(async (trx) => {
          await trx('sign_in_codes').delete();
          return trade('i'.repeat(43));
        });
        expect(status).to.equal(401);
      });

      it('starts only one session if the code is used twice concurrently', async () => {
        const code = await codeFor();
        const answers = await Promise.all([trade(code), trade(code)]);
        expect(answers.map(({ status }) => status).toSorted()).to.deep.equal([201, 401]);
      });

      it('hands over one code for each confirmation, only to a page of the core itself, and within two minutes', async () => {
        const browser = new TestBrowser();
        const flow = await signInForApp(at.harness, browser, toApp);
        expect(readCode(await handOver(browser, flow, { 'Sec-Fetch-Site': 'cross-site' }))).to.equal('cross-site');
        // When the user clicks several times.
        const answers = await Promise.all([handOver(browser, flow), handOver(browser, flow)]);
        const [code = '', ...more] = new Set(answers.map(readHandedOver));
        expect(more).to.deep.equal([]);
        expect((await trade(code)).status).to.equal(201);
        expect(readHandedOver(await handOver(browser, flow))).to.equal(code);
        expect((await trade(code)).status).to.equal(401);
        at.clock.advance({ minutes: 2, seconds: 1 });
        expect((await handOver(browser, flow)).status).to.equal(401);
      });

      it('hands over only the sign-in that the page names if the browser is signing in several apps', async () => {
        const browser = new TestBrowser();
        const flows: object[] = [];
        for (let port = 4711; port <= 4716; port++) {
          flows.push(await signInForApp(at.harness, browser, toApp.replace('4711', `${port}`)));
          at.clock.advance({ seconds: 1 });
        }
        const readPort = async (flow: object) => {
          const answer = await handOver(browser, flow);
          return answer.status === 201 ? new URL(textAt(answer, 'url')).port : readCode(answer);
        };
        // A browser keeps the newest five.
        expect(await Promise.all(flows.map(readPort))).to.deep.equal(['unauthorized', '4712', '4713', '4714', '4715', '4716']);
        expect(await readPort({ flow: '00000000' })).to.equal('unauthorized');
        expect(readCode(await handOver(new TestBrowser(), flows.at(-1) ?? {}))).to.equal('unauthorized');
        for (const body of [{}, { flow: '' }, { flow: '0000000G' }, { ...flows.at(-1), port: 4711 }]) {
          expect(await readPort(body), JSON.stringify(body)).to.equal('invalid');
        }
      });

      it('refuses a linked user who was disabled', async () => {
        const { direct, provider } = at.harness;
        const input = { email: 'away@example.com', name: 'Away', userType: 'staff', accountId: null, partnerId: null } as const;
        const { user } = await createUser(direct.ports, operator, input, password);
        provider.person = { subject: 'away-at-the-provider', email: input.email, isVerified: true };
        expect(await signInWithProvider(at.harness)).to.equal('done');
        await disableUser(direct.ports, operator, user);
        expect(await signInWithProvider(at.harness, new TestBrowser(), toApp)).to.equal('failed');
      });

      it('hands over no code for a user who was deleted in the meantime', async () => {
        const { direct, provider, tenants } = at.harness;
        const email = 'gone@example.com';
        const input = { email, name: 'Gone', userType: 'account', accountId: tenants.account.id, partnerId: null } as const;
        const { user } = await createUser(direct.ports, operator, input, password);
        provider.person = { subject: 'gone-at-the-provider', email, isVerified: true };
        const browser = new TestBrowser();
        const flow = await signInForApp(at.harness, browser, toApp);
        await deleteUser(direct.ports, operator, user, false);
        expect((await handOver(browser, flow)).status).to.equal(401);
      });

      it('refuses the code of a user who was disabled or unlinked in the meantime', async () => {
        const code = await codeFor();
        await at.harness.direct.storage.database.write('oidc_links').delete();
        expect((await trade(code)).status).to.equal(401);
      });

      it('signs no one in as a user who has been linked to someone else since the app asked for confirmation', async () => {
        const { direct, provider, tenants } = at.harness;
        const browser = new TestBrowser();
        const flow = await signInForApp(at.harness, browser, toApp);
        await unlinkUser(direct.ports, operator, tenants.users.account);
        provider.person = { ...ada, subject: 'the-real-ada' };
        expect(await signInWithProvider(at.harness)).to.equal('done');
        expect((await trade(readHandedOver(await handOver(browser, flow)))).status).to.equal(401);
      });

      for (const query of [
        '?port=4711',
        `?challenge=${challenge}`,
        `?port=80&challenge=${challenge}`,
        '?port=4711&challenge=short',
        '?more=1',
      ]) {
        it(`refuses to start with ${query.slice(0, 30)}`, async () => {
          expect((await new TestBrowser().open(`${at.harness.url}/console/oidc${query}`)).status).to.equal(400);
        });
      }
    });

    it('never reveals a secret in logs, errors, metrics or tables', async () => {
      const { core, direct, provider } = at.harness;
      const browser = new TestBrowser();
      const callback = await goToProvider(at.harness, browser);
      const code = new URL(callback).searchParams.get('code') ?? '';
      const [pair = ''] = browser.cookie(at.harness.url).split('; ');
      const flow = JSON.parse(Buffer.from(pair.slice(pair.indexOf('=') + 1), 'base64url').toString());
      expect(await finishSignIn(browser, callback)).to.equal('done');
      provider.forgery = { signature: 'stranger' };
      expect(await signInWithProvider(at.harness)).to.equal('failed');
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
