import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { changePassword, createUser, deleteUser, oneTimePasswordNote, resetPassword } from '../../core/domain/directory/users.ts';
import { instant, oneDay, plus } from '../../core/domain/instant.ts';
import type { Session, UserInput, Viewer } from '../../core/domain/model.ts';
import { checkPassword } from '../../core/domain/sign-in/throttle.ts';
import { createUsers, readProblem, viewers } from '../support/ports.ts';

const { account, partner, staff } = viewers;
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
});

describe('deleting a user', () => {
  it('deletes their keys and sessions as well', async () => {
    const { ports, deleted, events } = createUsers();
    expect(await deleteUser(ports, caller, account, true)).to.deep.equal({ apiKeys: 1, sessions: 2 });
    expect(deleted).to.deep.equal([['ada', true]]);
    expect(events[0]).to.deep.include({ action: 'user.deleted', subject: { kind: 'user', id: 'ada', name: 'Ada Account' } });
  });

  it('fails with not-found if the user was already deleted', async () => {
    const { ports } = createUsers({ isThere: false, found: [] });
    expect(await readProblem(deleteUser(ports, caller, account, false))).to.equal("not-found: This user doesn't exist.");
  });
});

describe('a new password', () => {
  const signedIn = (user: Viewer): Session => ({
    ...{ user, tenancy: null, passwordChangeDue: false, issuer: null, hasSecondFactor: false, beganWithLink: false, signInVersion: 'v1' },
    ...{ halfOpenUntil: null, startedAt: instant(1), lastSeenAt: instant(1) },
  });
  const change = (to: ReturnType<typeof createUsers>, newPassword = 'new password') =>
    changePassword(to.ports, { who: account, address: '192.0.2.1' }, signedIn(account), { currentPassword: 'old password', newPassword });

  it('replaces the current password', async () => {
    const users = createUsers();
    await change(users);
    expect(users.passwords).to.deep.equal([
      [
        { id: 'ada', signInVersion: 'v1' },
        { hash: 'hash of new password', expiresAt: null },
      ],
    ]);
    expect(users.events[0]).to.deep.include({ action: 'password.changed', subject: { kind: 'user', id: 'ada', name: 'Ada Account' } });
  });

  for (const [what, options] of [
    ['the current password is wrong', { right: false }],
    ['the current password was changed in the meantime', { isThere: false }],
  ] as const) {
    it(`is refused if ${what}`, async () => {
      expect(await readProblem(change(createUsers(options)))).to.equal('invalid at currentPassword: Incorrect current password.');
    });
  }

  it('must differ from the current password', async () => {
    const refusal = "invalid at newPassword: Choose a password that's different from your current one.";
    expect(await readProblem(change(createUsers(), 'old password'))).to.equal(refusal);
  });

  it('is limited by a counter of wrong attempts that only its user has, separate from sign-ins', async () => {
    const [changing, signingIn] = [createUsers(), createUsers()];
    await change(changing);
    await checkPassword(signingIn.ports, { email: account.email, address: '192.0.2.1', vouched: null }, account.email, 'x');
    expect(changing.throttleKeys.filter((key) => signingIn.throttleKeys.includes(key))).to.deep.equal([]);
    expect(changing.throttleKeys).to.have.length(1);
    const other = createUsers();
    await changePassword(other.ports, { who: partner, address: '192.0.2.1' }, signedIn(partner), {
      currentPassword: 'old password',
      newPassword: 'another one',
    });
    expect(changing.throttleKeys.filter((key) => other.throttleKeys.includes(key))).to.deep.equal([]);
  });

  it('set by someone else is valid for seven days if it was generated', async () => {
    const users = createUsers();
    const expiresAt = plus(users.ports.clock.now(), 7 * oneDay);
    expect(await resetPassword(users.ports, caller, account, null)).to.deep.equal({ password: oneTimePassword });
    expect(users.passwords).to.deep.equal([
      [
        { id: 'ada', signInVersion: 'any' },
        { hash: `hash of ${oneTimePassword}`, expiresAt, isHandedOut: true },
      ],
    ]);
    expect(users.events[0]).to.deep.include({ action: 'password.reset', subject: { kind: 'user', id: 'ada', name: 'Ada Account' } });
    expect(await resetPassword(users.ports, caller, account, 'a given one')).to.deep.equal({ password: null });
    expect(users.passwords[1]?.[1]).to.deep.equal({ hash: 'hash of a given one', expiresAt: null, isHandedOut: false });
  });

  it("is refused with not-found if the user doesn't exist", async () => {
    const { ports } = createUsers({ isThere: false, found: [] });
    expect(await readProblem(resetPassword(ports, caller, account, null))).to.equal("not-found: This user doesn't exist.");
  });
});
