import { expect } from 'chai';
import { type KeyVisibility, scopeFor, seesOthersKeys, type TenancyScope } from '../../core/domain/directory/scope.ts';
import type { Viewer } from '../../core/domain/model.ts';

const account = { id: 'a1', name: 'Blue Clinic', partnerId: 'p1' };
const nobody = { kind: 'nothing' } as const;
const partner = { id: 'p1', name: 'Northwind Voice' };
const viewer = (changes: Partial<Viewer>): Viewer => ({
  id: 'u1',
  email: 'u1@example.com',
  name: 'U',
  userType: 'staff',
  account: null,
  partner: null,
  tenancy: null,
  ...changes,
});

describe('the tenancy scope', () => {
  const inAccount = {
    owningScope: { accountId: 'a1', partnerId: 'p1' },
    campaigns: { kind: 'account', accountId: 'a1' },
    users: { kind: 'account', accountId: 'a1', partnerId: 'p1' },
    activity: { kind: 'account', accountId: 'a1' },
    directory: nobody,
  } as const;
  const inPartner = {
    owningScope: { accountId: null, partnerId: 'p1' },
    campaigns: { kind: 'partner', partnerId: 'p1' },
    users: { kind: 'partner', partnerId: 'p1' },
    activity: { kind: 'partner', partnerId: 'p1' },
  } as const;
  const own = { kind: 'own', userId: 'u1' } as const;
  const ofAccountUser = { ...inAccount, apiKeys: own, users: nobody, activity: own };
  const everything = { kind: 'all' } as const;
  const elsewhere = { kind: 'partner', id: 'p2', name: 'Other', partnerId: 'p2', partnerName: 'Other' } as const;

  const table: [string, Viewer, TenancyScope][] = [
    ["an account user sees their own keys and the account's campaigns", viewer({ userType: 'account', account }), ofAccountUser],
    [
      'a partner user sees the keys of all users under the partner and of staff in it, and the campaigns of all its accounts',
      viewer({ userType: 'partner', partner }),
      { ...inPartner, apiKeys: { kind: 'partner', partnerId: 'p1' }, directory: { kind: 'partner', partnerId: 'p1' } },
    ],
    [
      "a partner user limited to an account sees the keys created there, their own keys, and that account's campaigns",
      viewer({ userType: 'partner', partner, account }),
      { ...inAccount, apiKeys: { kind: 'account', accountId: 'a1', userId: 'u1' } },
    ],
    [
      'staff with an account selected see what was created there',
      viewer({ tenancy: { kind: 'account', ...account, partnerName: partner.name } }),
      { ...inAccount, apiKeys: { kind: 'tenancy', tenancy: { kind: 'account', id: 'a1' } }, directory: everything },
    ],
    [
      'staff with a partner selected see what was created there and in its accounts',
      viewer({ tenancy: { kind: 'partner', ...partner, partnerId: 'p1', partnerName: partner.name } }),
      { ...inPartner, apiKeys: { kind: 'tenancy', tenancy: { kind: 'partner', id: 'p1' } }, directory: everything },
    ],
    [
      'staff without a selected tenancy see the directory, but no keys or campaigns',
      viewer({}),
      {
        ...{ owningScope: null, apiKeys: nobody, campaigns: nobody },
        ...{ users: { kind: 'staff' }, activity: { kind: 'service' }, directory: everything },
      },
    ],
    [
      'an account user without an account sees nothing',
      viewer({ userType: 'account' }),
      { owningScope: null, apiKeys: nobody, campaigns: nobody, users: nobody, activity: nobody, directory: nobody },
    ],
    ['a selected tenancy is ignored for anyone but staff', viewer({ userType: 'account', account, tenancy: elsewhere }), ofAccountUser],
  ];
  for (const [rule, who, scope] of table) {
    it(rule, () => {
      expect(scopeFor(who)).to.deep.equal(scope);
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
    it(`${sees ? 'shows' : "doesn't show"} others' keys to a viewer with the visibility ${visibility.kind}`, () => {
      expect(seesOthersKeys(visibility)).to.equal(sees);
    });
  }
});
