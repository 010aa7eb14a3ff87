import { expect } from 'chai';
import { auditEvent, operator } from '../../core/domain/audit/audit.ts';
import { instant } from '../../core/domain/instant.ts';
import type { UserRow } from '../../core/storage/engine/tables.ts';
import { narrowToVisible } from '../../core/storage/keys/api-keys.ts';
import { updateUser } from '../../core/storage/users/users.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { createTenants, type DirectAccess, openDirect, type Tenants } from '../support/tenants.ts';

describe('the total number of keys', () => {
  onEachDatabase((kind) => {
    let direct: DirectAccess;
    let tenants: Tenants;
    let made: number;
    // Each test begins with the keys that the one before it has left.
    before(async () => {
      made = 0;
      direct = await openDirect(await freshDatabase(kind));
      tenants = await createTenants(direct.ports);
      await add('account', 'account', 3);
      await add('sibling', 'siblingAccount', 2);
      await add('partner', null, 4);
      await add('tied', 'account', 1);
      await add('staff', 'account', 2);
      await add('staff', 'otherAccount', 1);
    });
    after(() => direct.close());
    const write = () => direct.storage.database.write;

    /** Creates several keys of one user, in the scope of an account or of the first partner. */
    async function add(user: keyof Tenants['users'], account: 'account' | 'siblingAccount' | 'otherAccount' | null, count: number) {
      const creator = tenants.users[user];
      const partnerId = account === 'otherAccount' ? tenants.otherPartner.id : tenants.partner.id;
      for (let n = 0; n < count; n++) {
        const owningScope = { accountId: account && tenants[account].id, partnerId };
        const owner = { ...creator, isStaff: false, isDisabled: false, lastSignInAt: null };
        const key = { id: `key-${++made}`, name: 'A key', creator: owner, owningScope, createdAt: instant(made), lastUsedAt: null };
        const event = auditEvent(direct.ports, operator.actor, 'api-key.created', { kind: 'api-key', id: key.id, name: key.name }, null);
        const forever = {
          eventScope: owningScope,
          expiresAt: null,
          expiryTimeZone: null,
          timeZone: 'UTC',
          callsCountedFrom: null,
          limits: null,
        };
        await direct.ports.stores.apiKeys.create({ ...key, ...forever }, String(made).padStart(64, '0'), 1_000, event);
      }
    }
    const revoke = (ids: string[]) => direct.ports.stores.apiKeys.revoke(ids, { cancelQueuedCalls: false, at: instant(1) }, []);
    const listIds = (user: keyof Tenants['users']): Promise<string[]> =>
      write()('api_keys').where({ creator_id: tenants.users[user].id }).pluck('id');

    /** Returns the number of keys that each list reports, and the number that a query finds when it counts the same keys one by one. */
    async function listedAndCounted(): Promise<{ listed: number[]; counted: number[] }> {
      const { users, account, siblingAccount, partner, otherPartner } = tenants;
      const sights = [
        ...Object.values(users).map(({ id }) => ({ kind: 'own', userId: id }) as const),
        ...[users.tied, users.staff].map(({ id }) => ({ kind: 'account', accountId: account.id, userId: id }) as const),
        ...[partner, otherPartner].map(({ id }) => ({ kind: 'partner', partnerId: id }) as const),
        ...[account, siblingAccount].map(({ id }) => ({ kind: 'tenancy', tenancy: { kind: 'account', id } }) as const),
        ...[partner, otherPartner].map(({ id }) => ({ kind: 'tenancy', tenancy: { kind: 'partner', id } }) as const),
        ...(['all', 'nothing'] as const).map((other) => ({ kind: other })),
      ];
      const listed = await Promise.all(sights.map(async (sight) => (await direct.ports.stores.apiKeys.list(sight, 2)).total));
      const counted = await Promise.all(
        sights.map(async (sight) => (await narrowToVisible(write()('api_keys as k'), sight).select('k.id')).length),
      );
      return { listed, counted };
    }

    async function expectToBeRight(): Promise<void> {
      const { listed, counted } = await listedAndCounted();
      expect(listed).to.deep.equal(counted);
    }

    it('is correct after keys are created', async () => {
      await expectToBeRight();
      expect((await listedAndCounted()).listed).to.include.members([13, 4, 3, 0]);
    });

    it('is correct after keys are revoked, whether together or one at a time', async () => {
      await revoke(await listIds('partner'));
      await revoke(['key-1']);
      await expectToBeRight();
    });

    it('stays correct when a creator moves to another partner, or no longer has one', async () => {
      const event = auditEvent(direct.ports, operator.actor, 'user.changed', { kind: 'user', id: '', name: '' }, null);
      const move = (user: keyof Tenants['users'], columns: Pick<UserRow, 'user_type' | 'account_id' | 'partner_id'>) =>
        write().transaction((trx) => updateUser(trx, tenants.users[user].id, columns, event));
      await move('account', { user_type: 'account', account_id: tenants.otherAccount.id, partner_id: tenants.otherPartner.id });
      await move('sibling', { user_type: 'staff', account_id: null, partner_id: null });
      await move('staff', { user_type: 'partner', account_id: null, partner_id: tenants.partner.id });
      await expectToBeRight();
    });
  });
});
