import { expect } from 'chai';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { emptyDatabase, onEachDatabase } from '../support/databases.ts';
import { ask, untilServed } from '../support/http.ts';
import { createKey, createTenants, type DirectAccess, openDirect, placeCall, signIn, somePhone, type Tenants } from '../support/tenants.ts';
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

    it('place one call for a hundred requests with the same request ID at once, and give all of them the same response', async () => {
      const { keyValue } = await createKey(here.url, await signIn(here.url, 'ada@example.com'), 'To repeat');
      const body = { requestId: 'at-once', contact: { phone: somePhone() } };
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          untilServed(() => placeCall((n % 2 ? here : there).url, tenants.campaign.id, keyValue, body)),
        ),
      );
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
      expect(answers[0]?.status).to.equal(202);
      expect(await direct.storage.database.read('calls').where({ request_id: 'at-once' })).to.have.length(1);
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
  });
});
