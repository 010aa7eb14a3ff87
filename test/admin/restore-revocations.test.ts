import { join } from 'node:path';
import { expect } from 'chai';
import { adminOn } from '../support/admin.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDirectory } from '../support/databases.ts';
import { createKey, createTenants, openDirect, placeCall, signIn } from '../support/tenants.ts';
import { onToolDatabases } from '../support/tool-databases.ts';

describe('admin restore --revoke-again', () => {
  onToolDatabases(({ freshDatabase }) => {
    let url: string;
    let file: string;
    const json = (...args: string[]) => adminOn(url).json(...args);
    const admin = (...args: string[]) => adminOn(url).admin(args);
    beforeEach(async () => {
      url = await freshDatabase();
      file = join(freshDirectory(), 'backup');
    });

    it('removes the keys and users that were revoked, deleted or disabled after the backup', async () => {
      const direct = await openDirect(url);
      const tenants = await createTenants(direct.ports);
      // The user has so many keys that the deletion hasn't finished when the restore starts.
      const keysOfTom = Array.from({ length: 1_000 }, (_, n) => ({
        ...{ id: `of-tom-${n}`, digest: String(n).padStart(64, '0'), name: 'Many', creator_id: tenants.users.teammate.id },
        ...{ creator_partner_id: tenants.partner.id, account_id: tenants.account.id, partner_id: tenants.partner.id, created_at: n },
      }));
      await direct.storage.database.write.batchInsert('api_keys', keysOfTom, 100);
      await direct.close();
      const core = await startCoreHere(url);
      const cookie = await signIn(core.url, 'ada@example.com');
      const [kept, leaked] = [await createKey(core.url, cookie, 'Kept'), await createKey(core.url, cookie, 'Leaked')];
      await json('backup', file);
      await json('key', 'revoke', leaked.id);
      await json('user', 'delete', 'tom@example.com');
      await json('user', 'disable', 'sue@example.com');
      await core.close();
      const { revokedAgain, revokedApiKeys, ...users } = await json('restore', file, '--revoke-again');
      const emails = (list: { email: string }[]) => list.map(({ email }) => email);
      expect(revokedAgain).to.equal(true);
      expect(revokedApiKeys.length).to.equal(1_001);
      expect([emails(users.deletedUsers), emails(users.disabledUsers)]).to.deep.equal([['tom@example.com'], ['sue@example.com']]);
      const restored = await startCoreHere(url);
      expect((await placeCall(restored.url, tenants.campaign.id, kept.keyValue)).status).to.equal(202);
      expect((await placeCall(restored.url, tenants.campaign.id, leaked.keyValue)).status).to.equal(401);
      await restored.close();
      const left = (await json('user', 'list')).users.map(({ email, disabledAt }: { email: string; disabledAt: string | null }) => [
        email,
        disabledAt !== null,
      ]);
      expect(left).to.deep.include(['sue@example.com', true]).and.not.deep.include(['tom@example.com', false]);
    });

    it('cancels the calls that were cancelled with their key, and repeats the reason', async () => {
      const direct = await openDirect(url);
      const { campaign } = await createTenants(direct.ports);
      await direct.close();
      const core = await startCoreHere(url);
      const placeWithNewKey = async (name: string, email = 'ada@example.com') => {
        const key = await createKey(core.url, await signIn(core.url, email), name);
        await placeCall(core.url, campaign.id, key.keyValue);
        return key.id;
      };
      const leaked = await placeWithNewKey('Leaked');
      const interrupted = await placeWithNewKey('Interrupted');
      const kept = await placeWithNewKey('Kept');
      const active = await placeWithNewKey('Active');
      const ofDeleted = await placeWithNewKey('Of a deleted user', 'tom@example.com');
      const keptOfDeleted = await placeWithNewKey('Kept of a deleted user', 'tom@example.com');
      await core.close();
      await json('backup', file);
      await json('key', 'revoke', leaked, '--cancel-queued-calls', '--reason', 'leaked', '--note', 'In a public log');
      await json('key', 'revoke', kept);
      await json('key', 'revoke', keptOfDeleted);
      await json('user', 'delete', 'tom@example.com', '--cancel-queued-calls');
      const before = await openDirect(url);
      const revocation = { cancelQueuedCalls: 'later', at: before.ports.clock.now() } as const;
      await before.ports.stores.apiKeys.revoke([interrupted], revocation, []);
      await before.close();

      const { revokedApiKeys } = await json('restore', file, '--revoke-again');
      const cancelled = revokedApiKeys.filter(({ callsCancelled }: { callsCancelled: boolean }) => callsCancelled);
      expect(cancelled.map(({ id }: { id: string }) => id)).to.have.members([leaked, interrupted, ofDeleted]);
      const after = await openDirect(url);
      const { read } = after.storage.database;
      const calls: { api_key_id: string; state: string }[] = await read('calls').select('api_key_id', 'state');
      const reasons = await read('audit_events').where({ action: 'api-key.revoked', subject_id: leaked }).pluck('detail');
      await after.close();
      expect(Object.fromEntries(calls.map(({ api_key_id, state }) => [api_key_id, state]))).to.deep.equal({
        ...{ [leaked]: 'cancelled', [interrupted]: 'cancelled', [ofDeleted]: 'cancelled' },
        ...{ [kept]: 'queued', [keptOfDeleted]: 'queued', [active]: 'queued' },
      });
      expect(reasons).to.deep.equal(['leaked: In a public log']);
    });

    it("prints the list and exits with 1 if it can't revoke everything again", async () => {
      const direct = await openDirect(url);
      const { users } = await createTenants(direct.ports);
      const { write } = direct.storage.database;
      // No command finds this address, because commands convert addresses to lowercase.
      await write('users').where({ id: users.sibling.id }).update({ email: 'SUE@example.com' });
      await json('backup', file);
      await json('user', 'delete', 'tom@example.com');
      await write('users').where({ id: users.sibling.id }).update({ disabled_at: direct.ports.clock.now() });
      await direct.close();
      const { code, stdout, stderr } = await admin('--json', 'restore', file, '--revoke-again');
      const { revokedAgain, deletedUsers, disabledUsers } = JSON.parse(stdout);
      const listed = [...deletedUsers, ...disabledUsers].map(({ email }: { email: string }) => email);
      expect([code, revokedAgain, listed]).to.deep.equal([1, false, ['tom@example.com', 'SUE@example.com']]);
      expect(JSON.parse(stderr).error.message).to.match(/^Couldn't revoke everything again, .+: No user has the email address SUE@/);
    });
  });
});
