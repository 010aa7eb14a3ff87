import { join } from 'node:path';
import { expect } from 'chai';
import { operator, userEvent } from '../../core/domain/audit/audit.ts';
import { plus } from '../../core/domain/instant.ts';
import type { User } from '../../core/domain/model.ts';
import { adminOn } from '../support/commands.ts';
import { startCoreHere } from '../support/core.ts';
import { freshDirectory, onToolDatabases } from '../support/databases.ts';
import {
  addTenants,
  createKey,
  createTenants,
  insertCalls,
  insertKeys,
  openDirect,
  placeCall,
  signIn,
  type Tenants,
} from '../support/tenants.ts';

describe('admin restore --revoke-again', () => {
  onToolDatabases(({ kind, freshDatabase }) => {
    let url: string;
    let file: string;
    const json = (...args: string[]) => adminOn(url).json(...args);
    const admin = (...args: string[]) => adminOn(url).admin(args);
    beforeEach(async () => {
      url = await freshDatabase();
      file = join(freshDirectory(), 'backup');
    });

    /** Adds the tenants, and a key of each of these users with a queued call. Their IDs and names are the same. */
    async function addKeys(creators: Record<string, keyof Tenants['users']>): Promise<Tenants> {
      await using direct = await openDirect(url);
      const tenants = await createTenants(direct.ports);
      for (const [id, creator] of Object.entries(creators)) {
        await insertKeys(direct, tenants, [id], { creator_id: tenants.users[creator].id });
        await insertCalls(direct, tenants, [id], { api_key_id: id });
      }
      return tenants;
    }

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

    const changesOf = (changedUsers: { email: string; changes: string[] }[]) =>
      Object.fromEntries(changedUsers.map(({ email, changes }) => [email.replace('@example.com', ''), changes]));

    it('reduces the rights and limits that were reduced after the backup, but no others', async () => {
      const { users, account, partner } = await addKeys({ limited: 'teammate', widened: 'teammate' });
      await json('key', 'limit', 'widened', '--calls-per-day', '5');
      await json('backup', file);
      await json('user', 'move', 'stan@example.com', '--type', 'account', '--account', account.id);
      await json('user', 'move', 'tia@example.com', '--type', 'account', '--account', account.id);
      await json('user', 'move', 'tom@example.com', '--type', 'staff');
      await json('user', 'move', 'oda@example.com', '--type', 'partner', '--partner', partner.id);
      await json('key', 'limit', 'limited', '--addresses', '192.0.2.0/24', '--calls-per-day', '5');
      await json('key', 'limit', 'widened', '--calls-per-day', '50');
      const { revokedAgain, changedUsers, limitedApiKeys } = await json('restore', file, '--revoke-again');
      expect([revokedAgain, changesOf(changedUsers)]).to.deep.equal([true, { stan: ['rights'], tia: ['rights'], oda: ['rights'] }]);
      expect(limitedApiKeys).to.deep.equal([{ id: 'limited', name: 'limited', addresses: ['192.0.2.0/24'], callsPerDay: 5 }]);
      await using after = await openDirect(url);
      const { read } = after.storage.database;
      const types = await read('users').whereIn('id', [users.staff.id, users.teammate.id]).pluck('user_type');
      expect([types, await read('api_keys').pluck('calls_per_day')]).to.deep.equal([
        ['account', 'account'],
        [5, 5],
      ]);
    });

    /** Sets up a second factor whose secret and recovery code contain the step. */
    async function enroll(user: User, step: number): Promise<void> {
      await using direct = await openDirect(url);
      const { clock, stores } = direct.ports;
      await stores.secondFactors.enroll(user, `secret ${step}`);
      const confirmed = { secret: `secret ${step}`, step, recoveryDigests: [`code ${step}`], at: plus(clock.now(), step) };
      const event = userEvent(direct.ports, operator.actor, 'second-factor.enabled', user);
      await stores.secondFactors.confirm(user.id, confirmed, event);
    }

    async function link(user: User, subject: string): Promise<void> {
      await using direct = await openDirect(url);
      const event = userEvent(direct.ports, operator.actor, 'user.linked', user);
      await direct.ports.stores.links.create({ id: user.id }, { issuer: 'https://login.example.com', subject }, true, event);
    }

    it('lets users sign in only as they could before the restore, with the latest password and second factor', async () => {
      const { users } = await addTenants(url);
      await link(users.partner, 'pat');
      await link(users.teammate, 'former');
      await enroll(users.sibling, 1);
      await enroll(users.account, 2);
      await json('backup', file);
      await json('user', 'link', 'remove', 'pat@example.com');
      await json('user', 'link', 'remove', 'tom@example.com');
      await link(users.teammate, 'present');
      await json('user', 'second-factor', 'reset', 'sue@example.com');
      await json('user', 'second-factor', 'reset', 'ada@example.com');
      await enroll(users.account, 3);
      const { password: oneTime } = await json('user', 'password', 'tia@example.com');
      const { revokedAgain, changedUsers } = await json('restore', file, '--revoke-again');
      expect([revokedAgain, changesOf(changedUsers)]).to.deep.equal([
        true,
        { pat: ['link'], tom: ['link'], sue: ['factor'], ada: ['factor'], tia: ['password'] },
      ]);
      await using after = await openDirect(url);
      const { read } = after.storage.database;
      expect(await read('oidc_links')).to.deep.equal([]);
      expect(await read('second_factors').select('user_id', 'secret')).to.deep.equal([{ user_id: users.account.id, secret: 'secret 3' }]);
      expect(await read('recovery_codes').pluck('digest')).to.deep.equal(['code 3']);
      const restored = await startCoreHere(url);
      await signIn(restored.url, 'tia@example.com', oneTime).finally(restored.close);
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

    // How addresses are written doesn't depend on the database.
    if (kind === 'sqlite')
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
      await addKeys({
        ...{ leaked: 'account', interrupted: 'account', kept: 'account', active: 'account' },
        ...{ 'of-deleted': 'teammate', 'kept-of-deleted': 'teammate' },
      });
      await json('backup', file);
      await json('key', 'revoke', 'leaked', '--cancel-queued-calls', '--reason', 'leaked', '--note', 'In a public log');
      await json('key', 'revoke', 'kept');
      await json('key', 'revoke', 'kept-of-deleted');
      await json('user', 'delete', 'tom@example.com', '--cancel-queued-calls');
      const before = await openDirect(url);
      const revocation = { cancelQueuedCalls: 'later', at: before.ports.clock.now() } as const;
      await before.ports.stores.apiKeys.revoke(['interrupted'], revocation, []);
      await before.close();

      const { revokedApiKeys } = await json('restore', file, '--revoke-again');
      const cancelled = revokedApiKeys.filter(({ callsCancelled }: { callsCancelled: boolean }) => callsCancelled);
      expect(cancelled.map(({ id }: { id: string }) => id)).to.have.members(['leaked', 'interrupted', 'of-deleted']);
      const after = await openDirect(url);
      const { read } = after.storage.database;
      const calls: { api_key_id: string; state: string }[] = await read('calls').select('api_key_id', 'state');
      const reasons = await read('audit_events').where({ action: 'api-key.revoked', subject_id: 'leaked' }).pluck('detail');
      await after.close();
      expect(Object.fromEntries(calls.map(({ api_key_id, state }) => [api_key_id, state]))).to.deep.equal({
        ...{ leaked: 'cancelled', interrupted: 'cancelled', 'of-deleted': 'cancelled' },
        ...{ kept: 'queued', 'kept-of-deleted': 'queued', active: 'queued' },
      });
      expect(reasons).to.deep.equal(['leaked: In a public log; cancelled the queued calls']);
    });
  });
});
