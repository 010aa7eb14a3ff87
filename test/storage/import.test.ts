import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { type ImportFile, importAll, importFileSchema } from '../../core/domain/directory/import.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import type { ImportedEntity, ImportKind } from '../../core/domain/ports.ts';
import type { Problem } from '../../core/domain/problem.ts';
import { freshDatabase, onEachDatabase } from '../support/databases.ts';
import { openForEach } from '../support/suites.ts';
import { createTenants, openDirect } from '../support/tenants.ts';

const partners = [
  { externalId: 'p1', name: 'One' },
  { externalId: 'p2', name: 'Two' },
];
const accounts = [{ externalId: 'a1', name: 'A', partner: 'p1' }];
const campaigns = [{ externalId: 'c1', name: 'C', account: 'a1' }];
const user = { externalId: 'u1', email: 'new@example.com', name: 'New', userType: 'partner' as const, partner: 'p1' };
const all = { partners, accounts, campaigns, users: [user] };
const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

describe('imported entries', () => {
  onEachDatabase((kind) => {
    const direct = openForEach(async () => openDirect(await freshDatabase(kind)));

    const run = (file: Partial<ImportFile>) =>
      importAll(direct.ports, direct.storage.imports, async () => undefined, operator.actor, importFileSchema.parse(file));
    const find = async (kindOfThing: ImportKind, externalId: string): Promise<ImportedEntity> => {
      const entity = (await direct.storage.imports.find(kindOfThing, [externalId])).get(externalId);
      if (!entity) throw new Error(`There is no ${externalId}.`);
      return entity;
    };
    const toEvent = ({ id, name }: ImportedEntity) => ({
      ...{ id: direct.ports.randomness.id(), at: direct.ports.clock.now(), actor: null, action: 'user.changed' as const },
      ...{ subject: { kind: 'user' as const, id, name }, owningScope: null, address: 'local' },
    });
    const change = (kindOfThing: ImportKind, entity: ImportedEntity) =>
      direct.storage.imports.write(kindOfThing, {
        added: [],
        changed: [{ entity, event: toEvent(entity), unlinking: null, disabling: null }],
      });
    const conflict = (error: Problem) => `${error.code}: ${error.message}`;
    const meanwhile = 'conflict: Someone else changed the same data during the import. Run the import again.';

    it('are read back unchanged, each kind with its own fields', async () => {
      await run(all);
      const none = { partnerId: null, accountId: null, email: null, userType: null, disabled: null };
      const [p1, a1, c1, u1] = [
        await find('partners', 'p1'),
        await find('accounts', 'a1'),
        await find('campaigns', 'c1'),
        await find('users', 'u1'),
      ];
      expect(p1).to.deep.equal({ ...none, externalId: 'p1', name: 'One', id: p1.id });
      expect(a1).to.deep.equal({ ...none, externalId: 'a1', name: 'A', id: a1.id, partnerId: p1.id });
      expect(c1).to.deep.equal({ ...none, externalId: 'c1', name: 'C', id: c1.id, accountId: a1.id, partnerId: p1.id });
      const { email, name, userType } = user;
      expect(u1).to.deep.equal({ ...none, externalId: 'u1', name, id: u1.id, partnerId: p1.id, email, userType, disabled: false });
      expect((await run(all)).users).to.deep.equal({ added: 0, changed: 0, unchanged: 1 });
    });

    it('are found even if there are too many for one statement', async () => {
      await run({ partners: ids('p', 501).map((externalId) => ({ externalId, name: externalId })) });
      const entities = await direct.storage.imports.find('partners', ids('p', 501));
      expect([...entities.keys()]).to.have.members(ids('p', 501));
      expect(await direct.storage.imports.find('partners', ['nobody'])).to.deep.equal(new Map());
    });

    it("are compared with the owner of each email address, even one who wasn't imported", async () => {
      await createTenants(direct.ports);
      await run(all);
      const owners = await direct.storage.imports.findEmails([user.email, 'ada@example.com', 'nobody@example.com']);
      expect([...owners].toSorted()).to.deep.equal([
        ['ada@example.com', null],
        ['new@example.com', 'u1'],
      ]);
    });

    it('are refused completely if someone else has taken the same email address in the meantime', async () => {
      await run(all);
      const taken = { ...(await find('users', 'u1')), externalId: 'u2', id: 'u2' };
      const others = { ...taken, externalId: 'u3', id: 'u3', email: 'other@example.com' };
      const added = [others, taken].map((entity) => ({
        ...{ entity, password: { hash: 'h', expiresAt: null } },
        ...{ event: toEvent(entity), unlinking: null, disabling: null },
      }));
      expect(await direct.storage.imports.write('users', { added, changed: [] }).catch(conflict)).to.equal(meanwhile);
      expect(await direct.storage.imports.find('users', ['u2', 'u3'])).to.deep.equal(new Map());
    });

    it("are refused if a change takes another user's email address", async () => {
      await run({ ...all, users: [user, { ...user, externalId: 'u2', email: 'other@example.com' }] });
      expect(await change('users', { ...(await find('users', 'u2')), email: user.email }).catch(conflict)).to.equal(meanwhile);
    });

    it('are refused if someone else has already disabled the user whom they disable', async () => {
      await run(all);
      const entity = { ...(await find('users', 'u1')), disabled: true };
      const disable = () =>
        direct.storage.imports.write('users', {
          added: [],
          changed: [{ entity, event: null, unlinking: null, disabling: toEvent(entity) }],
        });
      await disable();
      expect(await disable().catch(conflict)).to.equal(meanwhile);
    });

    it('are refused if someone else has deleted the entry that they change', async () => {
      await run(all);
      const entity = await find('users', 'u1');
      const credentials = await direct.ports.stores.users.findByEmail(user.email);
      if (credentials) await deleteUser(direct.ports, operator, credentials.user, false);
      expect(await change('users', entity).catch(conflict)).to.equal(meanwhile);
    });
  });
});
