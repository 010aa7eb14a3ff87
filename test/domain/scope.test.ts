import { expect } from 'chai';
import { type KeyVisibility, scopeOf, seesOthersKeys, type TenancyScope } from '../../core/domain/directory/scope.ts';
import type { Viewer } from '../../core/domain/model.ts';

const account = { id: 'a1', name: 'Blue Clinic', partnerId: 'p1' };
const nobody = { kind: 'nothing' } as const;
const partner = { id: 'p1', name: 'Northwind Voice' };
const viewer = (some: Partial<Viewer>): Viewer => ({
  id: 'u1',
  email: 'u1@example.com',
  name: 'U',
  userType: 'staff',
  account: null,
  partner: null,
  tenancy: null,
  ...some,
});

describe('the tenancy scope', () => {
  const table: [string, Viewer, TenancyScope][] = [
    [
      'an account user: own keys, the campaigns of the account',
      viewer({ userType: 'account', account }),
      {
        owningScope: { accountId: 'a1', partnerId: 'p1' },
        apiKeys: { kind: 'own', userId: 'u1' },
        campaigns: { kind: 'account', accountId: 'a1' },
        users: nobody,
        activity: { kind: 'own', userId: 'u1' },
        directory: nobody,
      },
    ],
    [
      'a partner user: the keys of all users under the partner and of staff in it, the campaigns of all its accounts',
      viewer({ userType: 'partner', partner }),
      {
        owningScope: { accountId: null, partnerId: 'p1' },
        apiKeys: { kind: 'partner', partnerId: 'p1' },
        campaigns: { kind: 'partner', partnerId: 'p1' },
        users: { kind: 'partner', partnerId: 'p1' },
        activity: { kind: 'partner', partnerId: 'p1' },
        directory: { kind: 'partner', partnerId: 'p1' },
      },
    ],
    [
      'a tied partner user: the keys made in that account and own ones, the campaigns of that account',
      viewer({ userType: 'partner', partner, account }),
      {
        owningScope: { accountId: 'a1', partnerId: 'p1' },
        apiKeys: { kind: 'account', accountId: 'a1', userId: 'u1' },
        campaigns: { kind: 'account', accountId: 'a1' },
        users: { kind: 'account', accountId: 'a1', partnerId: 'p1' },
        activity: { kind: 'account', accountId: 'a1' },
        directory: nobody,
      },
    ],
    [
      'staff with an account selected: what was made there',
      viewer({ tenancy: { kind: 'account', ...account } }),
      {
        owningScope: { accountId: 'a1', partnerId: 'p1' },
        apiKeys: { kind: 'tenancy', tenancy: { kind: 'account', id: 'a1' } },
        campaigns: { kind: 'account', accountId: 'a1' },
        users: { kind: 'account', accountId: 'a1', partnerId: 'p1' },
        activity: { kind: 'account', accountId: 'a1' },
        directory: { kind: 'all' },
      },
    ],
    [
      'staff with a partner selected: what was made there and beneath',
      viewer({ tenancy: { kind: 'partner', ...partner, partnerId: 'p1' } }),
      {
        owningScope: { accountId: null, partnerId: 'p1' },
        apiKeys: { kind: 'tenancy', tenancy: { kind: 'partner', id: 'p1' } },
        campaigns: { kind: 'partner', partnerId: 'p1' },
        users: { kind: 'partner', partnerId: 'p1' },
        activity: { kind: 'partner', partnerId: 'p1' },
        directory: { kind: 'all' },
      },
    ],
    [
      'staff with nothing selected: the service itself',
      viewer({}),
      {
        owningScope: null,
        apiKeys: nobody,
        campaigns: nobody,
        users: { kind: 'staff' },
        activity: { kind: 'service' },
        directory: { kind: 'all' },
      },
    ],
    [
      'an account user without an account: nothing',
      viewer({ userType: 'account' }),
      { owningScope: null, apiKeys: nobody, campaigns: nobody, users: nobody, activity: nobody, directory: nobody },
    ],
    [
      'a tenancy on anyone but staff does not count',
      viewer({ userType: 'account', account, tenancy: { kind: 'partner', id: 'p2', name: 'Other', partnerId: 'p2' } }),
      {
        owningScope: { accountId: 'a1', partnerId: 'p1' },
        apiKeys: { kind: 'own', userId: 'u1' },
        campaigns: { kind: 'account', accountId: 'a1' },
        users: nobody,
        activity: { kind: 'own', userId: 'u1' },
        directory: nobody,
      },
    ],
  ];
  for (const [rule, who, scope] of table) {
    it(rule, () => {
      expect(scopeOf(who)).to.deep.equal(scope);
    });
  }

  const visibilities: [KeyVisibility, boolean][] = [
    [{ kind: 'own', userId: 'u1' }, false],
    [{ kind: 'nothing' }, false],
    [{ kind: 'account', accountId: 'a1', userId: 'u1' }, true],
    [{ kind: 'partner', partnerId: 'p1' }, true],
    [{ kind: 'tenancy', tenancy: { kind: 'partner', id: 'p1' } }, true],
    [{ kind: 'all' }, true],
  ];
  for (const [visibility, sees] of visibilities) {
    it(`shows ${sees ? 'the keys of others, too' : 'no keys of others'} to whom it shows ${visibility.kind}`, () => {
      expect(seesOthersKeys(visibility)).to.equal(sees);
    });
  }
});
