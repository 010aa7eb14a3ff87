import { expect } from 'chai';
import { identifyApiKey, listAllApiKeys } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser, deleteUser, enableUser } from '../../core/domain/directory/users.ts';
import { countWrongCounts } from '../../core/storage/keys/key-counts.ts';
import { fakeClock } from '../support/clock.ts';
import { startCoreHere } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { callerOf, type DirectAccess, databaseWithTenants, openDirect, type Tenants } from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** More than two steps can revoke. */
const many = 2_100;

describe('a user with thousands of API keys', () => {
  onEachDatabase((kind) => {
    let database: string;
    let direct: DirectAccess;
    let tenants: Tenants;
    const clock = fakeClock();
    const digestOf = (n: number) => `${n}`.padStart(64, '0');
    const keys = (count: number) => ({ campaignId: tenants.campaign.id, at: clock.millis(), ...callerOf(digestOf(count)) });
    const authorize = (n: number) => direct.ports.stores.calls.authorize(keys(n));
    const partnersKeys = () => listAllApiKeys(direct.ports, { kind: 'partner', partnerId: tenants.partner.id }, '', 500);
    const left = async () => (await direct.storage.database.read('api_keys').pluck('id')).length;
    const statesOfCalls = (): Promise<string[]> => direct.storage.database.read('calls').orderBy('contact_id').pluck('state');
    const remove = (cancelQueuedCalls = false) => deleteUser(direct.ports, operator, tenants.users.account, cancelQueuedCalls);
    const finish = () => direct.ports.stores.users.finishDeletions(new AbortController().signal);

    beforeEach(async () => {
      ({ database, tenants } = await databaseWithTenants(kind));
      direct = await openDirect(database, clock);
      const { write } = direct.storage.database;
      const { account, teammate } = tenants.users;
      const row = (n: number, creator: string) => ({
        ...{ id: `k${n}`, digest: digestOf(n), name: `Key ${n}`, creator_id: creator, creator_partner_id: tenants.partner.id },
        ...{ account_id: tenants.account.id, partner_id: tenants.partner.id, created_at: n },
      });
      // The oldest key is another user's.
      const rows = Array.from({ length: many + 1 }, (_, n) => row(n, n === 0 ? teammate.id : account.id));
      for (let start = 0; start < rows.length; start += 400) await write('api_keys').insert(rows.slice(start, start + 400));
      const call = (n: number) => ({
        ...{ campaign_id: tenants.campaign.id, account_id: tenants.account.id, api_key_id: `k${n}`, contact_id: `c${n}` },
        ...{ request_id: `c${n}`, placed_at: clock.millis(), due_at: clock.millis(), phone: '+493012345678', state: 'queued' as const },
      });
      await write('calls').insert([call(0), call(1), call(many)]);
    });
    afterEach(() => direct.close());

    it("is deleted immediately for every reader, while the keys' rows go in steps", async () => {
      const deleted = await remove();
      expect([deleted.apiKeys, await left()]).to.deep.equal([many, many + 1 - 1_000]);
      expect(await Promise.all([1, many].map(authorize))).to.deep.equal(['unauthorized', 'unauthorized']);
      const { ports } = direct;
      expect(await ports.stores.users.findByEmail('ada@example.com')).to.equal(null);
      expect((await ports.stores.users.list({ kind: 'all' }, '', null, 100)).map(({ id }) => id)).not.to.contain(tenants.users.account.id);
      expect(await identifyApiKey(ports, { ...tenants.users.partner, tenancy: null }, digestOf(1))).to.equal(null);
      const { apiKeys, total } = await partnersKeys();
      expect([apiKeys.map(({ id }) => id), total]).to.deep.equal([['k0'], 1]);
      expect(await ports.stores.apiKeys.findAll({ kind: 'all' }, ['k1', 'k0'])).to.have.length(1);
    });

    it("is deleted down to the last row, leaving other users' keys and correct counts", async () => {
      await remove();
      expect(await finish()).to.equal(many - 1_000);
      expect(await direct.storage.database.read('api_keys').pluck('id')).to.deep.equal(['k0']);
      expect(await direct.storage.database.read('users').where({ id: tenants.users.account.id })).to.deep.equal([]);
      expect(await countWrongCounts(direct.storage.database)).to.equal(0);
      expect([await authorize(0), (await partnersKeys()).total]).to.deep.equal(['authorized', 1]);
      expect(await direct.storage.database.read('retired_api_keys').where({ creator_name: 'Ada Account' })).to.have.length(many);
    });

    it('has the queued calls of all keys cancelled before the request returns', async () => {
      await remove(true);
      expect(await statesOfCalls()).to.deep.equal(['queued', 'cancelled', 'cancelled']);
    });

    it('is finished by the next core that starts if the process died, including the queued calls', async () => {
      direct.storage.database.awaitWriters = () => Promise.reject(new Error('killed'));
      expect(await remove(true).catch(({ code }) => code)).to.equal('unavailable');
      await direct.storage.database
        .write('calls')
        .whereNot({ contact_id: 'c0' })
        .update({ state: 'queued', due_at: clock.millis(), cancelled_at: null, ended_at: null });
      const core = await startCoreHere(database, { clock });
      const unfinished = () => direct.storage.database.read('retired_api_keys').whereNotNull('cancelling_since').pluck('id');
      await until(async () => (await left()) === 1 && (await unfinished()).length === 0);
      expect(await statesOfCalls()).to.deep.equal(['queued', 'cancelled', 'cancelled']);
      await core.close();
    });

    it('stays deleted, and frees the email address immediately', async () => {
      await remove();
      const { email, name, userType } = tenants.users.account;
      await createUser(direct.ports, operator, { email, name, userType, accountId: tenants.account.id, partnerId: null }, null);
      expect(await enableUser(direct.ports, operator, tenants.users.account).catch(({ code }) => code)).to.equal('conflict');
      expect(await remove().catch(({ code }) => code)).to.equal('not-found');
      expect(await authorize(1)).to.equal('unauthorized');
    });
  });
});
