import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { createCampaign } from '../../core/domain/directory/directory.ts';
import { setContactLimits } from '../../core/domain/protection/rules.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { emptyDatabase, onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { signingSecret, startReceiver } from '../support/provider.ts';
import {
  createKey,
  createTenants,
  type DirectAccess,
  databaseWithTenants,
  openDirect,
  placeCall,
  signIn,
  somePhone,
  type Tenants,
} from '../support/tenants.ts';
import { until } from '../support/until.ts';

describe('two cores on one database', () => {
  onEachDatabase((kind) => {
    let here: CoreProcess;
    let there: CoreProcess;
    let direct: DirectAccess;
    let tenants: Tenants;

    before(async () => {
      const database = await emptyDatabase(kind);
      // Both start at the same time on an empty database: one migrates it and creates the first user.
      [here, there] = await Promise.all([spawnCore(database), spawnCore(database)]);
      direct = await openDirect(database);
      tenants = await createTenants(direct.ports);
    });
    after(async () => {
      await direct.close();
      await Promise.all([here.stop(), there.stop()]);
    });

    it('can start at the same time on an empty database, and create only one first user', async () => {
      const users: { email: string }[] = await direct.storage.database.read('users').where({ email: 'admin@localhost' });
      expect(users).to.have.length(1);
      const told = () => [here, there].filter(({ stderr }) => stderr.join('\n').includes('one-time password'));
      await until(() => told().length > 0);
      expect(told()).to.have.length(1);
    });

    it('hash passwords with the parameters recommended by OWASP', async () => {
      const [hash]: string[] = await direct.storage.database.read('users').where({ email: 'admin@localhost' }).pluck('password_hash');
      expect(hash).to.match(/^\$argon2id\$v=19\$m=19456,p=1,t=2\$/);
    });

    it('refuse a key that was revoked on the other core', async () => {
      const cookie = await signIn(here.url, 'ada@example.com');
      const { id, keyValue } = await createKey(here.url, cookie, 'To revoke');
      expect((await placeCall(there.url, tenants.campaign.id, keyValue)).status).to.equal(202);
      expect((await ask('DELETE', `${here.url}/console/api-keys/${id}`, { cookie })).status).to.equal(204);
      expect((await placeCall(there.url, tenants.campaign.id, keyValue)).status).to.equal(401);
    });

    it('refuse a session that was ended on the other core', async () => {
      const cookie = await signIn(here.url, 'pat@example.com');
      expect((await ask('GET', `${there.url}/console/session`, { cookie })).status).to.equal(200);
      await ask('DELETE', `${here.url}/console/session`, { cookie });
      expect((await ask('GET', `${there.url}/console/session`, { cookie })).status).to.equal(401);
    });

    it('call one number no more often than its contact limits allow, whichever keys and campaigns call it', async () => {
      const { url, received, close } = await startReceiver();
      const environment = { DIALER: 'webhook', DIALER_URL: url, DIALER_SECRETS: signingSecret };
      const limited = await databaseWithTenants(kind);
      const own = await openDirect(limited.database);
      const cores = await Promise.all([spawnCore(limited.database, environment), spawnCore(limited.database, environment)]);
      try {
        const { account, campaign } = limited.tenants;
        await setContactLimits(own.ports, operator, { scope: 'account', id: account.id }, { calls: 2, days: 1, minutesBetween: 0 });
        const campaigns = [campaign, await createCampaign(own.ports, operator, 'Second', account.id)];
        const [one = here, other = here] = cores;
        const [ada, tom] = [await signIn(one.url, 'ada@example.com'), await signIn(one.url, 'tom@example.com')];
        const keys = [await createKey(one.url, ada), await createKey(other.url, ada), await createKey(other.url, tom)];
        const phones = Array.from({ length: 10 }, somePhone);
        for (const phone of phones)
          await Promise.all(
            keys.flatMap(({ keyValue }, n) =>
              campaigns.map(({ id }) => placeCall(n % 2 ? one.url : other.url, id, keyValue, { contact: { phone } })),
            ),
          );
        const held = async () => (await own.storage.database.read('calls').where({ held_for: 'contact-limit' })).length;
        await until(async () => (await held()) === 4 * phones.length && received.length >= 2 * phones.length);
        const calls = Map.groupBy(received, ({ handoff }) => handoff.contact.phone);
        expect(phones.map((phone) => calls.get(phone)?.length)).to.deep.equal(phones.map(() => 2));
      } finally {
        await Promise.all(cores.map((core) => core.stop()));
        await own.close();
        await close();
      }
    });
  });
});
