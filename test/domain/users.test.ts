import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { createUser, oneTimePasswordNote } from '../../core/domain/directory/users.ts';
import { oneDay, plus } from '../../core/domain/instant.ts';
import type { Viewer } from '../../core/domain/model.ts';
import type { UserInput } from '../../core/domain/ports.ts';
import { createUsers, readProblem, viewers } from '../support/ports.ts';

const { partner, tied, staff, staffInAccount } = viewers;
const caller = { ...operator, actor: { who: staff, address: '192.0.2.1' } };
const oneTimePassword = '0123-4567-89ab-cdef-ghjk-mnpq';

const input = (more: Partial<UserInput>): UserInput => ({
  email: 'new@example.com',
  name: 'New',
  userType: 'staff',
  accountId: null,
  partnerId: null,
  ...more,
});

describe('a new user', () => {
  for (const [what, more, refusal] of [
    [
      'an account user with a partner',
      { userType: 'account', accountId: 'a1', partnerId: 'p1' },
      "at partnerId: An account user needs an account and can't have a partner.",
    ],
    ['an account user without an account', { userType: 'account' }, 'at accountId: An account user needs an account.'],
    ['a partner user without a partner', { userType: 'partner', accountId: 'a1' }, 'at partnerId: A partner user needs a partner.'],
    ['staff with an account', { accountId: 'a1', partnerId: 'p1' }, "at accountId: A staff user can't have an account or a partner."],
    ['staff with a partner', { partnerId: 'p1' }, "at partnerId: A staff user can't have an account or a partner."],
    ['the user of a missing account', { userType: 'account', accountId: 'a9' }, "at accountId: The account a9 doesn't exist."],
    ['the user of a missing partner', { userType: 'partner', partnerId: 'p9' }, "at partnerId: The partner p9 doesn't exist."],
    [
      "the user of a partner with another partner's account",
      { userType: 'partner', partnerId: 'p1', accountId: 'a2' },
      "at accountId: This account doesn't belong to that partner.",
    ],
  ] as const) {
    it(`can't be ${what}`, async () => {
      const { ports, created } = createUsers();
      expect(await readProblem(createUser(ports, operator, input(more), null))).to.equal(`invalid ${refusal}`);
      expect(created).to.deep.equal([]);
    });
  }

  for (const [what, more, partnerId] of [
    ['an account', { userType: 'account', accountId: 'a1' }, 'p1'],
    ['a partner', { userType: 'partner', partnerId: 'p1' }, 'p1'],
    ['a partner and one of its accounts', { userType: 'partner', partnerId: 'p1', accountId: 'a1' }, 'p1'],
    ['the service', {}, null],
  ] as const) {
    it(`of ${what} is stored with their partner, if any, and with a one-time password that is valid for seven days`, async () => {
      const { ports, created, events } = createUsers();
      const { user, password } = await createUser(ports, caller, input(more), null);
      const createdAt = ports.clock.now();
      const stored = { hash: `hash of ${oneTimePassword}`, expiresAt: plus(createdAt, 7 * oneDay), isHandedOut: true };
      expect(created).to.deep.equal([{ ...input(more), id: user.id, partnerId, password: stored, createdAt }]);
      expect([password, oneTimePasswordNote]).to.deep.equal([
        oneTimePassword,
        'This password is shown only once. It works for seven days, or until the user chooses a new one.',
      ]);
      expect(events).to.deep.equal([
        {
          ...{ id: 'id2', at: createdAt, actor: { id: 'stan', name: 'Stan Staff' }, action: 'user.added', address: '192.0.2.1' },
          ...{ subject: { kind: 'user', id: user.id, name: 'New' } },
          owningScope: partnerId && { accountId: input(more).accountId, partnerId },
        },
      ]);
    });
  }

  it('keeps the given password', async () => {
    const { ports, created } = createUsers();
    expect((await createUser(ports, operator, input({}), 'a password')).password).to.equal(null);
    expect(created[0]?.password).to.deep.equal({ hash: 'hash of a password', expiresAt: null, isHandedOut: false });
  });

  describe('created in the console', () => {
    const create = (viewer: Viewer, more: object, users = createUsers()) =>
      createUser(
        users.ports,
        { viewer, actor: { who: viewer, address: '192.0.2.1' } },
        { email: 'new@example.com', name: 'New', userType: 'account', ...more },
      );

    const noAccount = "invalid at accountId: This account doesn't exist, or you don't have access to it.";
    for (const [what, viewer, more, refusal] of [
      ['a partner user creates staff', partner, { userType: 'staff' }, "forbidden: You can't create users of this type."],
      ['staff without a selected tenancy create customers', staff, {}, 'forbidden: Select an account or partner for the new user first.'],
      [
        'staff in an account create staff',
        staffInAccount,
        { userType: 'staff' },
        'forbidden: To create a staff user, clear the selected account or partner first.',
      ],
      [
        'a partner user without a partner creates users',
        { ...partner, partner: null },
        {},
        "forbidden: You can't create users of this type.",
      ],
      [
        'a partner user creates users of another partner',
        partner,
        { userType: 'partner', partnerId: 'p2' },
        "invalid at partnerId: This partner doesn't exist, or you don't have access to it.",
      ],
      ['a limited user creates users of a sibling account', tied, { accountId: 'a3' }, noAccount],
      ['a limited user creates users of another account', tied, { accountId: 'a2' }, noAccount],
      ["a partner user creates users of another partner's account", partner, { accountId: 'a2' }, noAccount],
      ['a partner user creates users of a missing account', partner, { accountId: 'a9' }, noAccount],
    ] as const) {
      it(`isn't stored if ${what}`, async () => {
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
      it(`belongs to ${what}`, async () => {
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
  });
});
