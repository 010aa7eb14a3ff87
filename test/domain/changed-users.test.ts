import { expect } from 'chai';
import { operator } from '../../core/domain/audit/audit.ts';
import { changeUser, disableUser, enableUser } from '../../core/domain/directory/users.ts';
import { instant } from '../../core/domain/instant.ts';
import type { AuditEvent, User } from '../../core/domain/model.ts';
import { fakePorts, readProblem, tenancies, viewers } from '../support/ports.ts';

const { tenancy: _, ...ada } = viewers.account;
const stan = viewers.staff;
const caller = { ...operator, actor: { who: stan, address: '192.0.2.1' } };

/** Creates a fake store in which the user is missing, was changed by someone else, or has this many sessions to end. */
function createUsers({ isThere = true, isUnchanged = true, ended = 2 as number | null } = {}) {
  const done: unknown[] = [];
  const events: AuditEvent[] = [];
  const unused = { lastSignInAt: null, disabledAt: null, apiKeys: 0, link: null, hasSecondFactor: false, signInVersion: '' };
  const found = { ...ada, partnerName: null, createdAt: instant(0), ...unused };
  const users = {
    change: async (id: string, before: object, changed: object, event: AuditEvent) => {
      done.push([id, before, changed]);
      events.push(event);
      return isThere && isUnchanged;
    },
    find: async () => (isThere ? found : null),
    setDisabled: async ({ id }: { id: string }, disabledAt: unknown, event: AuditEvent) => {
      done.push([id, disabledAt]);
      events.push(event);
      return ended;
    },
  };
  return { ports: fakePorts({ stores: { users, tenancies } }), done, events };
}

describe('changing a user', () => {
  const staff = { name: 'Ada Lovelace', userType: 'staff', accountId: null, partnerId: null } as const;

  for (const [what, change, partnerId] of [
    ['to another account', { userType: 'account', accountId: 'a2' }, 'p2'],
    ['to a partner', { userType: 'partner', partnerId: 'p2' }, 'p2'],
    ['to an account of a partner', { userType: 'partner', partnerId: 'p1', accountId: 'a3' }, 'p1'],
    ['to staff', {}, null],
  ] as const) {
    it(`moves them ${what}, and records an event there`, async () => {
      const { ports, done, events } = createUsers();
      const requested = { ...staff, ...change };
      await changeUser(ports, caller, ada, requested);
      const before = { name: 'Ada Account', userType: 'account', accountId: 'a1', partnerId: 'p1' };
      expect(done).to.deep.equal([['ada', before, { ...requested, partnerId }]]);
      expect(events[0]).to.deep.include({
        ...{ action: 'user.changed', actor: { id: 'stan', name: 'Stan Staff' }, address: '192.0.2.1' },
        ...{ subject: { kind: 'user', id: 'ada', name: 'Ada Lovelace' } },
        owningScope: partnerId && { accountId: requested.accountId, partnerId },
      });
    });
  }

  it('follows the same rules as creating a user', async () => {
    const { ports, done } = createUsers();
    const refusal = 'invalid at partnerId: A partner user needs a partner.';
    expect(await readProblem(changeUser(ports, caller, ada, { ...staff, userType: 'partner' }))).to.equal(refusal);
    expect(done).to.deep.equal([]);
  });

  it('fails with not-found if the user was deleted in the meantime', async () => {
    const { ports } = createUsers({ isThere: false });
    expect(await readProblem(changeUser(ports, caller, ada, staff))).to.equal("not-found: This user doesn't exist.");
  });

  it('fails with conflict if someone else changed the user in the meantime', async () => {
    const { ports } = createUsers({ isUnchanged: false });
    expect(await readProblem(changeUser(ports, caller, ada, staff))).to.match(/^conflict: Someone else changed this user/);
  });
});

describe('disabling a user', () => {
  const toEvent = (action: string) => ({
    ...{ action, subject: { kind: 'user', id: 'ada', name: 'Ada Account' }, owningScope: { accountId: 'a1', partnerId: 'p1' } },
    ...{ actor: { id: 'stan', name: 'Stan Staff' }, address: '192.0.2.1' },
  });
  const disable = (to: ReturnType<typeof createUsers>, user: User = ada) => disableUser(to.ports, caller, user);

  it('takes effect immediately, ends all sessions and records an event', async () => {
    const to = createUsers();
    expect([await disable(to), await disable(createUsers({ ended: 0 }))]).to.deep.equal([2, 0]);
    expect(to.done).to.deep.equal([['ada', to.ports.clock.now()]]);
    expect(to.events[0]).to.deep.include(toEvent('user.disabled'));
  });

  it('fails if the user is already disabled', async () => {
    expect(await readProblem(disable(createUsers({ ended: null })))).to.equal('conflict: ada@example.com is already disabled.');
  });

  it('can be reversed, which records an event', async () => {
    const { ports, done, events } = createUsers({ ended: 0 });
    await enableUser(ports, caller, ada);
    expect(done).to.deep.equal([['ada', null]]);
    expect(events[0]).to.deep.include(toEvent('user.enabled'));
  });

  it('can be reversed only once', async () => {
    const refusal = "conflict: ada@example.com isn't disabled.";
    expect(await readProblem(enableUser(createUsers({ ended: null }).ports, caller, ada))).to.equal(refusal);
  });
});
