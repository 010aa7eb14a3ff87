import { expect } from 'chai';
import { activitySchema } from '#contract/console/activity.ts';
import { apiKeyDetailsSchema, apiKeysSchema } from '#contract/console/api-keys.ts';
import { type ChangeUser, changedUserSchema } from '#contract/console/users.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { changeUser } from '../../core/domain/directory/users.ts';
import { type CoreHarness, openCore } from '../support/core.ts';
import { onEachDatabase } from '../support/databases.ts';
import { ask } from '../support/http.ts';
import { readProblem } from '../support/ports.ts';
import { openOnce } from '../support/suites.ts';
import { createKey, placeCall, signIn } from '../support/tenants.ts';

describe('changing a user in the console', () => {
  onEachDatabase((kind) => {
    const harness = openOnce(() => openCore({ kind }));
    const cookies = new Map<string, string>();

    before(async () => {
      for (const who of ['ada', 'pat', 'tia', 'otto', 'stan', 'tom'])
        cookies.set(who, await signIn(harness.core.url, `${who}@example.com`));
    });

    type User = keyof CoreHarness['tenants']['users'];
    const as = (who: string) => ({ cookie: cookies.get(who) ?? '' });
    const change = (who: string, user: User, body: object) =>
      ask('PATCH', `${harness.core.url}/console/users/${harness.tenants.users[user].id}`, { ...as(who), body });

    it('renames the user, and records one event with the previous name', async () => {
      const renamed = await change('pat', 'sibling', { name: ' Sue  King ' });
      expect(changedUserSchema.parse(renamed.json).user.name).to.equal('Sue  King');
      await change('pat', 'sibling', { name: 'Sue  King' });
      const { json } = await ask('GET', `${harness.core.url}/console/activity`, as('pat'));
      const events = activitySchema.parse(json).events.filter(({ action }) => action === 'user.changed');
      const recorded = events.map(({ subject, actor, detail }) => [subject.name, actor?.name, detail]);
      expect(recorded).to.deep.equal([['Sue  King', 'Pat Partner', `name: ${harness.tenants.users.sibling.name} → Sue  King`]]);
    });

    it('disables the user immediately, marks their keys as refused, and enables the user again, even if requests are repeated', async () => {
      const { core, tenants } = harness;
      const { id, keyValue } = await createKey(core.url, cookies.get('tom') ?? '');
      const place = async () => (await placeCall(core.url, tenants.campaign.id, keyValue)).status;
      const shown = async () => {
        const list = await ask('GET', `${core.url}/console/api-keys`, as('tia'));
        const details = await ask('GET', `${core.url}/console/api-keys/${id}?timeZone=UTC`, as('tia'));
        const listed = apiKeysSchema.parse(list.json).apiKeys.find((key) => key.id === id);
        return [listed, apiKeyDetailsSchema.parse(details.json).apiKey].map((key) => [key?.ownerDisabled, key?.owner?.email]);
      };
      expect([await place(), await shown()]).to.deep.equal([202, Array(2).fill([undefined, 'tom@example.com'])]);
      for (const { json } of await Promise.all([1, 2].map(() => change('tia', 'teammate', { disabled: true }))))
        expect(changedUserSchema.parse(json).user.disabledAt).to.be.a('string');
      expect((await ask('GET', `${core.url}/console/session`, as('tom'))).status).to.equal(401);
      expect([await place(), await shown()]).to.deep.equal([401, Array(2).fill([true, 'tom@example.com'])]);
      const enabled = await change('tia', 'teammate', { disabled: false });
      expect([enabled.status, changedUserSchema.parse(enabled.json).user.disabledAt]).to.deep.equal([200, null]);
      expect([await place(), await shown()]).to.deep.equal([202, Array(2).fill([undefined, 'tom@example.com'])]);
    });

    it("doesn't undo someone else's move or rename that happens after the user was read", async () => {
      const { direct, tenants } = harness;
      const { stores } = direct.ports;
      const { id } = tenants.users.teammate;
      const caller = { viewer: { ...tenants.users.partner, tenancy: null }, actor: operator.actor };
      /** Makes a change, but only saves it after someone else has saved another one. */
      async function changeAfter(others: object, own: ChangeUser): Promise<string> {
        const find: typeof stores.users.find = async (...asked) => {
          const found = await stores.users.find(...asked);
          expect((await change('pat', 'teammate', others)).status).to.equal(200);
          return found;
        };
        return readProblem(changeUser({ ...direct.ports, stores: { ...stores, users: { ...stores.users, find } } }, caller, { id }, own));
      }
      const { account, siblingAccount } = tenants;
      expect(await changeAfter({ accountId: siblingAccount.id }, { name: 'Renamed' })).to.match(
        /^conflict: Someone else changed this user/,
      );
      expect(await changeAfter({ name: 'Tom King' }, { accountId: account.id })).to.match(/^conflict: /);
      const left = await stores.users.find({ kind: 'all' }, id);
      expect([left?.name, left?.account?.id]).to.deep.equal(['Tom King', siblingAccount.id]);
      expect((await change('pat', 'teammate', { name: 'Tom Teammate', accountId: account.id })).status).to.equal(200);
    });

    it("is refused for users outside the viewer's scope, and users can't disable or move themselves", async () => {
      const { account, siblingAccount, otherAccount } = harness.tenants;
      for (const [who, user, body, status] of [
        ['ada', 'teammate', { name: 'T' }, 403],
        ['otto', 'teammate', { disabled: true }, 404],
        ['tia', 'sibling', { name: 'S' }, 404],
        ['tia', 'partner', { disabled: true }, 404],
        ['tia', 'teammate', { accountId: siblingAccount.id }, 422],
        ['tia', 'tied', { accountId: null }, 409],
        ['tia', 'tied', { disabled: true }, 409],
        ['tia', 'tied', { name: 'Tia Tied' }, 200],
        ['pat', 'account', { accountId: otherAccount.id }, 422],
        ['pat', 'account', { accountId: 'none' }, 422],
        ['pat', 'account', { accountId: null }, 422],
        ['pat', 'partner', { disabled: false }, 409],
        ['pat', 'partner', { accountId: account.id }, 409],
        ['stan', 'account', { name: 'A' }, 404],
        ['stan', 'staff', { disabled: true }, 409],
      ] as const)
        expect((await change(who, user, body)).status, `${who}: ${user} ${JSON.stringify(body)}`).to.equal(status);
    });

    it('records that the user was disabled in the account to which the same change moves them', async () => {
      const { account, siblingAccount } = harness.tenants;
      expect((await change('pat', 'teammate', { accountId: siblingAccount.id, disabled: true })).status).to.equal(200);
      const events = harness.direct.storage.database.read('audit_events').where({ action: 'user.disabled' }).orderBy('id', 'desc');
      expect((await events)[0]).to.include({ account_id: siblingAccount.id, subject_name: 'Tom Teammate' });
      await change('pat', 'teammate', { accountId: account.id, disabled: false });
    });
  });
});
