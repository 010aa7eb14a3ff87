import { expect } from 'chai';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { type Answer, ask, readCookies } from '../support/http.ts';
import { type Authenticator, enroll } from '../support/second-factor.ts';
import { type DirectAccess, databaseWithTenants, openDirect, password, signIn, type Tenants } from '../support/tenants.ts';

describe('two cores that sign in the same users', () => {
  onEachDatabase((kind) => {
    let cores: CoreProcess[];
    let direct: DirectAccess;
    let tenants: Tenants;
    before(async () => {
      const filled = await databaseWithTenants(kind);
      ({ tenants } = filled);
      const environment = { TRUSTED_PROXIES: '127.0.0.1', SESSION_SECRETS: 'a secret of both cores with 32 characters or more' };
      cores = await Promise.all([spawnCore(filled.database, environment), spawnCore(filled.database, environment)]);
      direct = await openDirect(filled.database);
    });
    after(async () => {
      await direct.close();
      await Promise.all(cores.map((core) => core.stop()));
    });

    let addresses = 0;
    /** Throttle counters are per address, so each attempt comes from its own address. */
    const fromElsewhere = () => ({ 'X-Forwarded-For': `198.51.100.${++addresses}` });
    async function enrolled(email: string): Promise<{ cookie: string; app: Authenticator; recoveryCodes: string[] }> {
      const [{ url } = { url: '' }] = cores;
      const cookie = await signIn(url, email);
      return { cookie, ...(await enroll(url, cookie)) };
    }

    /** Starts six sign-ins, three on each core, and then enters the same code in all of them at the same moment. */
    async function enterSixTimes(email: string, codeNow: () => string): Promise<Answer[]> {
      const waiting: { url: string; cookie: string }[] = [];
      for (const { url } of [...cores, ...cores, ...cores]) {
        const answer = await ask('POST', `${url}/console/session`, { body: { email, password }, headers: fromElsewhere() });
        expect(answer.status, answer.text).to.equal(202);
        waiting.push({ url, cookie: readCookies(answer) });
      }
      const body = { code: codeNow() };
      return Promise.all(
        waiting.map(({ url, cookie }) => ask('POST', `${url}/console/session/second-factor`, { cookie, body, headers: fromElsewhere() })),
      );
    }
    const once = [201, 401, 401, 401, 401, 401];

    it('accept a recovery code once', async () => {
      const { recoveryCodes } = await enrolled(tenants.users.account.email);
      const answers = await enterSixTimes(tenants.users.account.email, () => recoveryCodes[0] ?? '');
      expect(answers.map(({ status }) => status).toSorted()).to.deep.equal(once);
    });

    it("accept a code from a user's app once", async () => {
      const { app } = await enrolled(tenants.users.partner.email);
      const answers = await enterSixTimes(tenants.users.partner.email, () => app.code(1));
      expect(answers.map(({ status }) => status).toSorted()).to.deep.equal(once);
    });

    it('leave ten recovery codes if both replace them, and accept only the codes from one response', async () => {
      const { id, email } = tenants.users.staff;
      const { cookie, recoveryCodes } = await enrolled(email);
      const answers = await Promise.all(
        recoveryCodes.slice(0, 6).map((code, n) => {
          const { url } = cores[n % 2] ?? { url: '' };
          return ask('POST', `${url}/console/second-factor/recovery-codes`, { cookie, body: { code } });
        }),
      );
      expect(answers.map(({ status }) => status).toSorted()).to.deep.equal([200, 401, 401, 401, 401, 401]);
      expect(await direct.storage.database.read('recovery_codes').where({ user_id: id })).to.have.length(10);
    });
  });
});
