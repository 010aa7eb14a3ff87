import { expect } from 'chai';
import { changeUser, createUser, deleteUser, listUsers, previewDeletion, resetPassword } from '../../core/domain/directory/users.ts';
import type { AuditEvent, UserChange, Viewer } from '../../core/domain/model.ts';
import { createUsers, readProblem, viewers } from '../support/ports.ts';

const { account, partner, tied, staff, staffInAccount } = viewers;
const oneTimePassword = '0123-4567-89ab-cdef-ghjk-mnpq';

describe('managing other users', () => {
  const all = { search: '', cursor: null, away: false };
  const create = (viewer: Viewer, more: object, users = createUsers()) =>
    createUser(
      users.ports,
      { viewer, actor: { who: viewer, address: '192.0.2.1' } },
      { email: 'new@example.com', name: 'New', userType: 'account', ...more },
    );

  it("isn't possible for account users", async () => {
    const refusal = "forbidden: Account users can't manage users.";
    expect(await readProblem(listUsers(createUsers().ports, account, all))).to.equal(refusal);
    expect(await readProblem(create(account, {}))).to.equal(refusal);
  });

  it("lists the users in the viewer's scope", async () => {
    const { ports, asked } = createUsers();
    expect((await listUsers(ports, tied, all)).items.map(({ id }) => id)).to.deep.equal(['ada']);
    expect(asked).to.deep.equal([{ kind: 'account', accountId: 'a1', partnerId: 'p1' }]);
  });

  for (const [what, viewer, more, refusal] of [
    ['a partner user create staff', partner, { userType: 'staff' }, "forbidden: You can't create users of this type."],
    ['staff without a selected tenancy create customers', staff, {}, 'forbidden: Select an account or partner for the new user first.'],
    [
      'staff in an account create staff',
      staffInAccount,
      { userType: 'staff' },
      'forbidden: To create a staff user, clear the selected account or partner first.',
    ],
    ['a partner user without a partner create users', { ...partner, partner: null }, {}, "forbidden: You can't create users of this type."],
    [
      'a partner user create users of another partner',
      partner,
      { userType: 'partner', partnerId: 'p2' },
      "invalid at partnerId: This partner doesn't exist, or you don't have access to it.",
    ],
    [
      'a limited user create users of a sibling account',
      tied,
      { accountId: 'a3' },
      "invalid at accountId: This account doesn't exist, or you don't have access to it.",
    ],
    [
      'a limited user create users of another account',
      tied,
      { accountId: 'a2' },
      "invalid at accountId: This account doesn't exist, or you don't have access to it.",
    ],
    [
      "a partner user create users of another partner's account",
      partner,
      { accountId: 'a2' },
      "invalid at accountId: This account doesn't exist, or you don't have access to it.",
    ],
    [
      'a partner user create users of a missing account',
      partner,
      { accountId: 'a9' },
      "invalid at accountId: This account doesn't exist, or you don't have access to it.",
    ],
    ['a partner user create account users without an account', partner, {}, 'invalid at accountId: An account user needs an account.'],
    [
      'staff create staff with an account',
      staff,
      { userType: 'staff', accountId: 'a1' },
      "invalid at accountId: A staff user can't have an account or a partner.",
    ],
    [
      'staff create staff with a partner',
      staff,
      { userType: 'staff', partnerId: 'p1' },
      "invalid at partnerId: A staff user can't have an account or a partner.",
    ],
    [
      'a partner user create account users with a partner',
      partner,
      { accountId: 'a1', partnerId: 'p1' },
      "invalid at partnerId: An account user needs an account and can't have a partner.",
    ],
  ] as const) {
    it(`doesn't let ${what}`, async () => {
      const users = createUsers();
      expect(await readProblem(create(viewer, more, users))).to.equal(refusal);
      expect(users.created).to.deep.equal([]);
    });
  }

  for (const [what, viewer, more, place] of [
    ['the service, for staff', staff, { userType: 'staff' }, { accountId: null, partnerId: null }],
    ['the given account', partner, { accountId: 'a1' }, { accountId: 'a1', partnerId: 'p1' }],
    ["the creator's account, when given", tied, { accountId: 'a1' }, { accountId: 'a1', partnerId: 'p1' }],
    ["the creator's account", tied, {}, { accountId: 'a1', partnerId: 'p1' }],
    ['the account that staff have selected', staffInAccount, {}, { accountId: 'a1', partnerId: 'p1' }],
    ["the creator's partner", partner, { userType: 'partner' }, { accountId: null, partnerId: 'p1' }],
    ["the creator's partner and account", tied, { userType: 'partner' }, { accountId: 'a1', partnerId: 'p1' }],
    ['the given partner', partner, { userType: 'partner', partnerId: 'p1' }, { accountId: null, partnerId: 'p1' }],
  ] as const) {
    it(`creates users in ${what}`, async () => {
      const users = createUsers();
      const { user, password } = await create(viewer, more, users);
      expect(users.created[0]).to.include(place);
      expect(password).to.equal(oneTimePassword);
      expect(user).to.deep.include({
        id: 'id1',
        name: 'New',
        email: 'new@example.com',
        createdAt: users.ports.clock.now(),
        lastSignInAt: null,
        apiKeys: 0,
      });
    });
  }

  it("doesn't fail if someone else has disabled the user in the meantime", async () => {
    const { ports } = createUsers();
    const { find } = ports.stores.users;
    let disabledAt: number | null = null;
    Object.assign(ports.stores.users, {
      setDisabled: async (_user: object, at: number) => {
        disabledAt = at;
        return null;
      },
      find: async (...args: Parameters<typeof find>) => ({ ...(await find(...args)), disabledAt }),
    });
    const change = changeUser(ports, { viewer: partner, actor: { who: partner, address: '' } }, { id: 'ada' }, { disabled: true });
    expect((await change).id).to.equal('ada');
  });

  it('records that a user was disabled in the account that the same change moves them to', async () => {
    const { ports } = createUsers();
    const events: AuditEvent[] = [];
    const { find } = ports.stores.users;
    let changed = {};
    Object.assign(ports.stores.users, {
      change: async (_id: string, _before: object, { name, accountId }: UserChange) => {
        changed = { name, account: { id: accountId, name: 'A', partnerId: 'p1' } };
        return true;
      },
      setDisabled: async (_user: object, disabledAt: unknown, event: AuditEvent) => {
        changed = { ...changed, disabledAt };
        return events.push(event);
      },
      find: async (...args: Parameters<typeof find>) => ({ ...(await find(...args)), ...changed }),
    });
    const change = { name: 'Ada Lovelace', accountId: 'a3', disabled: true };
    await changeUser(ports, { viewer: partner, actor: { who: partner, address: '' } }, { id: 'ada' }, change);
    expect(events[0]).to.deep.include({ owningScope: { accountId: 'a3', partnerId: 'p1' } });
    expect(events[0]?.subject.name).to.equal('Ada Lovelace');
  });

  it("doesn't let users delete themselves", async () => {
    const users = createUsers();
    await deleteUser(users.ports, { viewer: partner, actor: { who: partner, address: '' } }, { id: 'ada' }, true);
    expect(users.deleted).to.deep.equal([['ada', true]]);
    const own = createUsers({ found: [partner] });
    const refusal = "conflict: You can't delete yourself. Ask another administrator to do it.";
    expect(
      await readProblem(deleteUser(own.ports, { viewer: partner, actor: { who: partner, address: '' } }, { id: 'pat' }, true)),
    ).to.equal(refusal);
    expect(own.deleted).to.deep.equal([]);
  });

  it("doesn't let users reset their own password", async () => {
    const users = createUsers();
    expect(await resetPassword(users.ports, { viewer: partner, actor: { who: partner, address: '' } }, { id: 'ada' })).to.deep.equal({
      password: oneTimePassword,
    });
    const own = createUsers({ found: [partner] });
    const refusal = "conflict: You can't reset your own password. Change it instead, which requires your current password.";
    expect(await readProblem(resetPassword(own.ports, { viewer: partner, actor: { who: partner, address: '' } }, { id: 'pat' }))).to.equal(
      refusal,
    );
  });

  it('shows the keys and calls that deleting a user affects', async () => {
    expect(await previewDeletion(createUsers().ports, partner, 'ada', null)).to.deep.include({
      apiKeys: { items: [], nextCursor: null },
      sessions: 3,
    });
  });

  it("can't find users outside the viewer's scope", async () => {
    const { ports } = createUsers({ found: [] });
    expect(await readProblem(previewDeletion(ports, partner, 'x', null))).to.equal(
      "not-found: This user doesn't exist, or you don't have access to them.",
    );
  });
});
