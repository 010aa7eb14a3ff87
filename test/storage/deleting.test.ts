import { mock } from 'node:test';
import { expect } from 'chai';
import { findUser } from '../../core/admin/user.ts';
import { identifyApiKey, listApiKeys, showRevokedApiKey, toDigest } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { createCampaign, deleteManaged } from '../../core/domain/directory/directory.ts';
import { changeUser, createUser, deleteUser, enableUser, finishUserChanges } from '../../core/domain/directory/users.ts';
import { instant } from '../../core/domain/instant.ts';
import type { Caller } from '../../core/domain/model.ts';
import { toProblem } from '../../core/storage/engine/errors.ts';
import { fakeClock } from '../support/clock.ts';
import { startCoreHere } from '../support/core.ts';
import { databases, onEachDatabase } from '../support/databases.ts';
import { openOnce } from '../support/suites.ts';
import {
  createTenants,
  insertCalls,
  insertKeys,
  openDirect,
  restoredTenants,
  restoreForEach,
  type Tenants,
  toCaller,
} from '../support/tenants.ts';
import { until } from '../support/until.ts';

/** Enough keys that several transactions are needed: the first one changes 1,000 keys (`keysPerTransaction`), and each later one 200. */
const many = 1_300;

const clock = fakeClock();
const createDigest = (n: number) => toDigest(`k${n}`);
const filled = databases('a user with many keys', async (databaseUrl) => {
  await using direct = await openDirect(databaseUrl, clock);
  const tenants = await createTenants(direct.ports);
  const ids = Array.from({ length: many }, (_, n) => `k${n + 1}`);
  await insertKeys(direct, tenants, ids);
  await insertKeys(direct, tenants, ['k0'], { creator_id: tenants.users.teammate.id, created_at: instant(0) });
  for (const n of [0, 1, many]) await insertCalls(direct, tenants, [`c${n}`], { api_key_id: `k${n}` });
  return tenants;
});

describe('a user with thousands of API keys', () => {
  onEachDatabase((kind) => {
    const tenants = {} as Tenants;
    const direct = openOnce(async () => {
      const { database, content } = await filled.createCopy(kind);
      Object.assign(tenants, content);
      return { ...(await openDirect(database, clock)), database };
    });
    restoreForEach(() => direct);
    afterEach(() => mock.reset());
    const authorize = (n: number, { id: campaignId } = tenants.campaign) =>
      direct.ports.stores.calls.authorize({ campaignId, at: clock.now(), ...toCaller(createDigest(n)) });
    const left = async () => (await direct.storage.database.read('api_keys').pluck('id')).length;
    const statesOfCalls = (): Promise<string[]> => direct.storage.database.read('calls').orderBy('contact_id').pluck('state');
    const remove = (cancelQueuedCalls = false) => deleteUser(direct.ports, operator, tenants.users.account, cancelQueuedCalls);
    const { signal } = new AbortController();
    const finish = () => finishUserChanges(direct.ports, signal);
    const move = async (to: 'otherAccount' | 'account') => {
      const user = await findUser(direct.ports, 'ada@example.com');
      const change = { name: user.name, userType: 'account', accountId: tenants[to].id, partnerId: null } as const;
      return changeUser(direct.ports, operator, user, change);
    };
    const listKeys = (partner: 'partner' | 'otherPartner') => listApiKeys(direct.ports, partnerKeys(partner), '', 500);
    const partnerKeys = (partner: 'partner' | 'otherPartner') => ({ kind: 'partner', partnerId: tenants[partner].id }) as const;
    const findAs = (partner: 'partner' | 'otherPartner', n: number) =>
      direct.ports.stores.apiKeys.find(partnerKeys(partner), `k${n}`).then((key) => key?.id);
    const recordedWith = async (partner: 'partner' | 'otherPartner') =>
      (await direct.storage.database.read('api_keys').where({ creator_partner_id: tenants[partner].id }).pluck('id')).length;

    it("is deleted immediately for every reader, while the keys' rows are deleted in batches, leaving other users' keys and correct counts", async () => {
      const deleted = await remove();
      expect([deleted.apiKeys, await left()]).to.deep.equal([many, many + 1 - 1_000]);
      expect(await Promise.all([authorize(1), authorize(many)])).to.deep.equal(['unauthorized', 'unauthorized']);
      const { ports } = direct;
      expect(await ports.stores.users.findByEmail('ada@example.com')).to.equal(null);
      expect(
        (await ports.stores.users.list({ kind: 'all' }, { search: '', awaySince: null }, null, 100)).map(({ id }) => id),
      ).not.to.contain(tenants.users.account.id);
      expect(await identifyApiKey(ports, { ...tenants.users.partner, tenancy: null }, createDigest(1))).to.equal(null);
      const { apiKeys, total } = await listKeys('partner');
      expect([apiKeys.map(({ id }) => id), total]).to.deep.equal([['k0'], 1]);
      expect(await ports.stores.apiKeys.findToChange({ kind: 'all' }, ['k1', 'k0'])).to.have.length(1);

      expect(await finish()).to.equal(many - 1_000);
      expect(await direct.storage.database.read('api_keys').pluck('id')).to.deep.equal(['k0']);
      expect(await direct.storage.database.read('users').where({ id: tenants.users.account.id })).to.deep.equal([]);
      expect([await authorize(0), (await listKeys('partner')).total]).to.deep.equal(['authorized', 1]);
      expect(await direct.storage.database.read('revoked_api_keys').where({ creator_name: 'Ada Account' })).to.have.length(many);
    });

    it('leaves an event for each key that ended with them, which says who deleted the user, also when another process finishes', async () => {
      const { account, partner } = tenants.users;
      const caller = { viewer: { ...partner, tenancy: null }, actor: { who: partner, address: '192.0.2.7' } };
      await deleteUser(direct.ports, caller, account, false);
      const ends = () => direct.storage.database.read('audit_events').where({ action: 'api-key.revoked' });
      expect(await ends()).to.have.length(1_000);
      await finish();
      const ended = await ends();
      expect(new Set(ended.map(({ subject_id }) => subject_id)).size).to.equal(many);
      const facts = ended.map(({ actor_id, address, detail, account_id, partner_id }) => [
        actor_id,
        address,
        detail,
        account_id,
        partner_id,
      ]);
      const told = [partner.id, '192.0.2.7', 'its user Ada Account was deleted', tenants.account.id, tenants.partner.id];
      expect([...new Set(facts.map((fact) => JSON.stringify(fact)))]).to.deep.equal([JSON.stringify(told)]);
      const { apiKey, end, activity } = await showRevokedApiKey(direct.ports, caller.viewer, 'k1');
      expect([apiKey.name, end?.actor?.name, activity.map(({ action }) => action)]).to.deep.equal([
        'k1',
        partner.name,
        ['api-key.revoked'],
      ]);
    });

    it('has the queued calls of all their keys cancelled before the request returns, and events say so, also when another process finishes', async () => {
      await remove(true);
      expect(await statesOfCalls()).to.deep.equal(['queued', 'cancelled', 'cancelled']);
      await finish();
      const events = direct.storage.database.read('audit_events').whereIn('action', ['api-key.revoked', 'user.deleted']);
      expect(await events.distinct('action', 'detail').orderBy('action')).to.deep.equal([
        { action: 'api-key.revoked', detail: 'its user Ada Account was deleted; cancelled the queued calls' },
        { action: 'user.deleted', detail: 'cancelled the queued calls' },
      ]);
    });

    it('is completely deleted by the next core that starts if the process died, including the queued calls', async () => {
      mock.method(direct.storage.database.lanes.console, 'awaitWriters', () => Promise.reject(new Error('killed')));
      expect(await remove(true).catch(({ code }) => code)).to.equal('unavailable');
      await direct.storage.database
        .write('calls')
        .whereNot({ contact_id: 'c0' })
        .update({ state: 'queued', due_at: clock.now(), cancelled_at: null, ended_at: null });
      const core = await startCoreHere(direct.database, { clock });
      const unfinished = () => direct.storage.database.read('revoked_api_keys').whereNotNull('cancelling_since').pluck('id');
      await until(async () => (await left()) === 1 && (await unfinished()).length === 0);
      expect(await statesOfCalls()).to.deep.equal(['queued', 'cancelled', 'cancelled']);
      await core.close();
    });

    it("doesn't prevent the deletion of other users if their own deletion fails", async () => {
      await remove();
      await deleteUser(direct.ports, operator, tenants.users.teammate, false);
      const deleted = { deleted_at: clock.now(), disabled_at: clock.now() };
      const { write, read } = direct.storage.database;
      await write('users').where({ id: tenants.users.sibling.id }).update(deleted);
      // This session appears after the user's sessions were deleted, so the user's row can't be deleted.
      const id = { id: 'stuck', user_id: tenants.users.account.id, tenancy_kind: null, tenancy_id: null };
      await write('sessions').insert({ ...id, started_at: instant(1), last_seen_at: instant(1) });
      expect(await finish().catch(({ code }) => code)).to.match(/^SQLITE_CONSTRAINT|^23503/);
      expect(await read('users').whereNotNull('deleted_at').pluck('id')).to.deep.equal([tenants.users.account.id]);
    });

    it("moves to another partner immediately with all keys, of which the partner's lists show the newest until all rows were moved in batches", async () => {
      await move('otherAccount');
      for (const n of [1, many]) {
        expect([await authorize(n), await authorize(n, tenants.otherCampaign)]).to.deep.equal(['campaign-refused', 'authorized']);
        expect([await findAs('partner', n), await findAs('otherPartner', n)]).to.deep.equal([undefined, `k${n}`]);
      }
      expect(await recordedWith('otherPartner')).to.equal(1_000);
      const { apiKeys, total } = await listKeys('partner');
      expect([apiKeys.map(({ id }) => id), total]).to.deep.equal([['k0'], 1]);
      const newest = Array.from({ length: 500 }, (_, n) => `k${many - n}`);
      expect((await listKeys('otherPartner')).apiKeys.map(({ id }) => id)).to.deep.equal(newest);

      expect(await finish()).to.equal(many - 1_000);
      expect(await recordedWith('partner')).to.equal(1);
      expect([(await listKeys('partner')).total, (await listKeys('otherPartner')).total]).to.deep.equal([1, many]);
      expect(await direct.storage.database.read('users').whereNotNull('moving_keys')).to.deep.equal([]);
      expect(await finish()).to.equal(0);
    });

    it('keeps their keys through several moves', async () => {
      await move('otherAccount');
      // Move 200 keys, as another core would have done in its first batch.
      const some = Array.from({ length: 200 }, (_, n) => `k${many - 1_000 - n}`);
      const { write } = direct.storage.database;
      await write('api_keys').whereIn('id', some).update({ creator_partner_id: tenants.otherPartner.id });
      await move('account');
      expect([await finish(), await recordedWith('partner')]).to.deep.equal([200, many + 1]);
      expect((await listKeys('partner')).total).to.equal(many + 1);
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

describe("a campaign whose deletion doesn't end", () => {
  onEachDatabase((kind) => {
    const { direct, tenants } = restoredTenants(kind, clock);
    let id: string;
    afterEach(() => mock.reset());
    beforeEach(async () => {
      ({ id } = await createCampaign(direct.ports, operator, 'Stays', tenants.account.id));
    });

    const remove = (caller: Caller = operator, campaignId = id) => deleteManaged(direct.ports, caller, 'campaign', campaignId);
    const failure = (deleting: Promise<unknown>) => deleting.then(() => 'deleted', toCode);
    const toCode = (error: unknown) => Object(toProblem(error)).code;
    /** The campaign's IDs and events. */
    const found = async () => {
      const { read } = direct.storage.database;
      const events: string[] = await read('audit_events').where({ subject_id: id }).pluck('action');
      return [...(await read('campaigns').where({ name: 'Stays' }).pluck('id')), ...events];
    };
    const asItWas = () => [id, 'campaign.added'];

    it('stays as it was if the session has ended, or the database fails', async () => {
      const session = toDigest('ended');
      expect(await failure(remove({ ...operator, actor: { ...operator.actor, session } }))).to.equal('unauthorized');
      expect(await found()).to.deep.equal(asItWas());
      const rename = (from: string, to: string) => direct.storage.database.write.raw(`ALTER TABLE audit_events RENAME ${from} TO ${to}`);
      await rename('address', 'renamed');
      expect(await failure(remove())).to.match(/^(SQLITE_ERROR|42703)/);
      await rename('renamed', 'address');
      expect(await found()).to.deep.equal(asItWas());
      expect(await failure(remove())).to.equal('deleted');
      expect(await found()).to.deep.equal(['campaign.added', 'campaign.deleted']);
    });

    if (kind === 'sqlite') return;

    it('stays as it was if a statement that may place a call takes too long, or has placed one', async () => {
      const { console } = direct.storage.database.lanes;
      mock.method(console, 'awaitWriters', async () => false);
      expect(await failure(remove())).to.equal('unavailable');
      expect(await found()).to.deep.equal(asItWas());
      mock.method(console, 'awaitWriters', async () => {
        await insertCalls(direct, tenants, ['c'], { campaign_id: id });
        return true;
      });
      expect(await failure(remove())).to.equal('conflict');
      expect(await found()).to.deep.equal(asItWas());
    });

    it('is back soon if its process was killed or hangs, which then no longer deletes it', async () => {
      const { promise: hanging, resolve: goOn } = Promise.withResolvers<boolean>();
      mock.method(direct.storage.database.lanes.console, 'awaitWriters', () => hanging);
      const removing = failure(remove());
      await until(async () => !(await found()).includes(id));
      const [hidden = ''] = await found();
      expect(await failure(remove(operator, hidden))).to.equal('not-found');
      await using other = await openDirect(direct.database, clock);
      const { restoreCampaigns } = other.ports.stores.directory;
      expect([await restoreCampaigns(), await restoreCampaigns(), await restoreCampaigns()]).to.deep.equal([0, 1, 0]);
      expect(await found()).to.deep.equal(asItWas());
      goOn(true);
      expect(await removing).to.equal('not-found');
      expect(await found()).to.deep.equal(asItWas());
    });
  });
});
