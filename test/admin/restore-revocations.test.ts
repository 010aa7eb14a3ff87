import { join } from 'node:path';
import { expect } from 'chai';
import type { AuditAction } from '#contract/console/activity.ts';
import { operator, userEvent } from '../../core/domain/audit/audit.ts';
import { plus } from '../../core/domain/instant.ts';
import type { User } from '../../core/domain/model.ts';
import { adminOn } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDirectory, onToolDatabases } from '../support/databases.ts';
import { addTenants, createKey, createTenants, type DirectAccess, insertKeys, openDirect, placeCall, signIn } from '../support/tenants.ts';

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
      const ofTom = Array.from({ length: 1_000 }, (_, n) => `of-tom-${n}`);
      await insertKeys(direct, tenants, ofTom, { creator_id: tenants.users.teammate.id });
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

    it('reduces the rights and limits that were reduced after the backup, and restores how users signed in', async () => {
      const direct = await openDirect(url);
      const { users, account, partner } = await createTenants(direct.ports);
      const { ports } = direct;
      const provider = { issuer: 'https://login.example.com', subject: 'pat' };
      const event = (action: AuditAction, user: User) => userEvent(ports, operator.actor, action, user);
      const confirm = async ({ ports }: DirectAccess, user: User, step: number) => {
        await ports.stores.secondFactors.enroll(user, `secret ${step}`);
        const confirmed = { secret: `secret ${step}`, step, recoveryDigests: [`code ${step}`], at: plus(ports.clock.now(), step) };
        await ports.stores.secondFactors.confirm(user.id, confirmed, event('second-factor.enabled', user));
      };
      await ports.stores.links.create({ id: users.partner.id }, provider, true, event('user.linked', users.partner));
      await confirm(direct, users.sibling, 1);
      await confirm(direct, users.account, 2);
      await direct.close();
      const core = await startCoreHere(url);
      const key = await createKey(core.url, await signIn(core.url, 'tom@example.com'), 'Limited');
      const wide = await createKey(core.url, await signIn(core.url, 'tom@example.com'), 'Widened');
      await core.close();
      await json('key', 'limit', wide.id, '--calls-per-day', '5');
      await json('backup', file);

      await json('user', 'move', 'stan@example.com', '--type', 'account', '--account', account.id);
      await json('user', 'move', 'tom@example.com', '--type', 'staff');
      await json('user', 'move', 'oda@example.com', '--type', 'partner', '--partner', partner.id);
      await json('user', 'link', 'remove', 'pat@example.com');
      await json('user', 'second-factor', 'reset', 'sue@example.com');
      await json('user', 'second-factor', 'reset', 'ada@example.com');
      const { password: oneTime } = await json('user', 'password', 'tia@example.com');
      await json('key', 'limit', key.id, '--addresses', '192.0.2.0/24', '--calls-per-day', '5');
      await json('key', 'limit', wide.id, '--calls-per-day', '50');
      const between = await openDirect(url);
      await confirm(between, users.account, 3);
      await between.close();

      const { revokedAgain, changedUsers, limitedApiKeys } = await json('restore', file, '--revoke-again');
      expect(revokedAgain).to.equal(true);
      expect(
        Object.fromEntries(changedUsers.map(({ email, changes }: { email: string; changes: string[] }) => [email, changes])),
      ).to.deep.equal({
        ...{ 'stan@example.com': ['rights'], 'pat@example.com': ['link'], 'sue@example.com': ['factor'] },
        ...{ 'ada@example.com': ['factor'], 'tia@example.com': ['password'], 'oda@example.com': ['rights'] },
      });
      expect(limitedApiKeys).to.deep.equal([{ id: key.id, name: 'Limited', addresses: ['192.0.2.0/24'], callsPerDay: 5 }]);
      const after = await openDirect(url);
      const find = (user: User) => after.ports.stores.users.find({ kind: 'all' }, user.id);
      expect([(await find(users.staff))?.userType, (await find(users.teammate))?.userType]).to.deep.equal(['account', 'account']);
      expect([(await find(users.partner))?.link, (await find(users.sibling))?.hasSecondFactor]).to.deep.equal([null, false]);
      expect((await after.ports.stores.secondFactors.find(users.account.id))?.secret).to.equal('secret 3');
      const codes = await after.storage.database.read('recovery_codes').pluck('digest');
      const limits = await after.storage.database.read('api_keys').whereIn('id', [key.id, wide.id]).orderBy('name').pluck('calls_per_day');
      expect([codes, limits]).to.deep.equal([['code 3'], [5, 5]]);
      await after.close();
      const restored = await startCoreHere(url);
      await signIn(restored.url, 'tia@example.com', oneTime);
      await restored.close();
    });

    it("prints the list, exits with 1, and says what it couldn't reduce again", async () => {
      const { partner } = await addTenants(url);
      await json('backup', file);
      const { account } = await json('account', 'add', 'Later', '--partner', partner.id);
      await json('user', 'move', 'ada@example.com', '--account', account.id);
      await json('user', 'delete', 'tom@example.com');
      const { code, stdout, stderr } = await admin('--json', 'restore', file, '--revoke-again');
      const { revokedAgain, changedUsers, deletedUsers } = JSON.parse(stdout);
      const listed = [...changedUsers, ...deletedUsers].map(({ email }: { email: string }) => email);
      expect([code, revokedAgain, listed]).to.deep.equal([1, false, ['ada@example.com', 'tom@example.com']]);
      expect(JSON.parse(stderr).error.message).to.include(`ada@example.com, moved or demoted: The account ${account.id} doesn't exist.`);
      expect((await json('user', 'list')).users.map(({ email }: { email: string }) => email)).not.to.include('tom@example.com');
    });

    it('shows the readable spelling of email addresses', async () => {
      const add = (name: string) => json('user', 'add', `${name}@münchen.example`, '--name', name, '--type', 'staff');
      for (const name of ['deleted', 'disabled', 'reset']) await add(name);
      await json('backup', file);
      await json('user', 'delete', 'deleted@münchen.example');
      await json('user', 'disable', 'disabled@münchen.example');
      await json('user', 'password', 'reset@münchen.example');
      const { stdout } = await admin('restore', file, '--revoke-again');
      for (const name of ['deleted', 'disabled', 'reset']) expect(stdout).to.contain(`\n${name}@münchen.example `);
    });

    it('cancels the calls that were cancelled with their key, and repeats the reason', async () => {
      const { campaign } = await addTenants(url);
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
      expect(reasons).to.deep.equal(['leaked: In a public log; cancelled the queued calls']);
    });
  });
});
