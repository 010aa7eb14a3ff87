import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeKeyValue } from '#contract/key-value.ts';
import { toDigest } from '../../core/domain/api-keys.ts';
import { instant } from '../../core/domain/instant.ts';
import { type CoreProcess, spawnCore } from '../support/core.ts';
import { emptyDatabase, onEachDatabase } from '../support/databases.ts';
import { ask, textAt } from '../support/http.ts';
import { createTenants, type DirectAccess, openDirect, placeCall, signIn, somePhone, type Tenants } from '../support/tenants.ts';
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

    /** Inserts this many API keys created by Ada directly into the database. @returns their IDs and values */
    async function manyKeys(count: number): Promise<{ id: string; keyValue: string }[]> {
      const keys = Array.from({ length: count }, () => ({ id: direct.ports.randomness.id(), keyValue: makeKeyValue(randomBytes) }));
      const row = {
        name: 'x',
        creator_id: tenants.users.account.id,
        creator_partner_id: tenants.partner.id,
        account_id: tenants.account.id,
      };
      const rows = keys.map(({ id, keyValue }) => ({
        ...row,
        id,
        digest: toDigest(keyValue),
        partner_id: tenants.partner.id,
        created_at: instant(0),
      }));
      for (let start = 0; start < count; start += 100)
        await direct.storage.database.write('api_keys').insert(rows.slice(start, start + 100));
      return keys;
    }

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

    // npm run chaos does this 1,000 times while the keys are in use.
    it('refuse the next request of a key revoked on the other core, 200 times out of 200', async () => {
      const cookie = await signIn(here.url, 'ada@example.com');
      const results = { before: 0, revoked: 0, refused: 0 };
      const keys = await manyKeys(200);
      const inTurn = async () => {
        for (let key = keys.pop(); key; key = keys.pop()) {
          if ((await placeCall(there.url, tenants.campaign.id, key.keyValue)).status === 202) results.before++;
          if ((await ask('DELETE', `${here.url}/console/api-keys/${key.id}`, { cookie })).status === 204) results.revoked++;
          if ((await placeCall(there.url, tenants.campaign.id, key.keyValue)).status === 401) results.refused++;
        }
      };
      await Promise.all(Array.from({ length: 8 }, inTurn));
      expect(results).to.deep.equal({ before: 200, revoked: 200, refused: 200 });
    });

    it('place one call for a hundred concurrent requests with the same request ID', async () => {
      const [key] = await manyKeys(1);
      for (let round = 0; round < 5; round++) {
        const body = { requestId: `both-${round}`, contact: { phone: somePhone() } };
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, n) => placeCall(n % 2 ? here.url : there.url, tenants.campaign.id, key?.keyValue ?? '', body)),
        );
        expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
        expect(answers[0]?.status).to.equal(202);
        expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).to.have.length(1);
      }
    });

    it('accept the same calls in opposite orders without a deadlock, and place each once', async () => {
      const [key] = await manyKeys(1);
      const ids = Array.from({ length: 200 }, (_, n) => `order-${n}`);
      const phone = somePhone();
      const send = (url: string, requestId: string) =>
        placeCall(url, tenants.campaign.id, key?.keyValue ?? '', { requestId, contact: { phone } });
      const answers = await Promise.all([...ids.map((id) => send(here.url, id)), ...ids.toReversed().map((id) => send(there.url, id))]);
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([202]));
      expect(new Set(answers.map((answer) => textAt(answer, 'contactId'))).size).to.equal(200);
    });

    it('refuse a session that was ended on the other core', async () => {
      const cookie = await signIn(here.url, 'pat@example.com');
      expect((await ask('GET', `${there.url}/console/session`, { cookie })).status).to.equal(200);
      await ask('DELETE', `${here.url}/console/session`, { cookie });
      expect((await ask('GET', `${there.url}/console/session`, { cookie })).status).to.equal(401);
    });
  });
});
