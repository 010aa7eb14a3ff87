import type { TenancyKind } from '#contract/console/common.ts';
import type { Operator, OwningScope, Viewer } from '../model.ts';
import { Problem } from '../problem.ts';

type Account = { kind: 'account'; accountId: string };
type Partner = { kind: 'partner'; partnerId: string };
/** For the operator on the server itself. */
type All = { kind: 'all' };
type Nothing = { kind: 'nothing' };

/** Access to the campaigns of one account, or of all accounts of a partner. */
export type CampaignAccess = Account | Partner | All | Nothing;

/** The keys that a viewer can see and revoke. */
export type KeyVisibility =
  | { kind: 'own'; userId: string }
  /** Keys that anyone created in the account's scope, and all of the viewer's own keys. */
  | { kind: 'account'; accountId: string; userId: string }
  /** Keys of all users who are under the partner now, and keys that staff created for the partner or one of its accounts. */
  | Partner
  /** Keys created in the scope of an account, or of a partner and its accounts. */
  | { kind: 'tenancy'; tenancy: { kind: TenancyKind; id: string } }
  | All
  | Nothing;

/** The users that a viewer can see, create and delete. */
export type UserVisibility =
  | (Account & { partnerId: string })
  | Partner
  /** The service's own staff. */
  | { kind: 'staff' }
  | All
  | Nothing;

export type ActivityVisibility =
  | { kind: 'own'; userId: string }
  | Account
  | Partner
  /** Events that don't belong to a partner. */
  | { kind: 'service' }
  | Nothing;

/** The accounts and campaigns that a viewer can create and rename. Partners can be managed only with `all`. */
export type DirectoryAccess = All | Partner | Nothing;

export type TenancyScope = {
  /** The scope of a key that the viewer creates now; null if the viewer can't create one. */
  owningScope: OwningScope | null;
  apiKeys: KeyVisibility;
  campaigns: CampaignAccess;
  users: UserVisibility;
  activity: ActivityVisibility;
  directory: DirectoryAccess;
};

const nothing = { kind: 'nothing' } as const;
const all = { kind: 'all' } as const;
const emptyScope: TenancyScope = {
  owningScope: null,
  apiKeys: nothing,
  campaigns: nothing,
  users: nothing,
  activity: nothing,
  directory: nothing,
};

/**
 * The only code that decides what each type of user, and the operator, can see. A partner user who's limited to one account sees that
 * account and its users instead of all of the partner's, and the keys that were created for the account as well as their own.
 * storage/keys/authorization.ts decides what a *key* has access to, and treats all partner users alike.
 */
export function scopeFor(viewer: Viewer | Operator): TenancyScope {
  switch (viewer.userType) {
    case 'operator':
      return { ...emptyScope, apiKeys: all, campaigns: all, users: all, directory: all };
    case 'account': {
      if (!viewer.account) return emptyScope;
      const { id: accountId, partnerId } = viewer.account;
      return {
        owningScope: { accountId, partnerId },
        apiKeys: { kind: 'own', userId: viewer.id },
        campaigns: { kind: 'account', accountId },
        users: nothing,
        // Account users can't see each other's keys, so they can't see events about those keys either.
        activity: { kind: 'own', userId: viewer.id },
        directory: nothing,
      };
    }
    case 'partner': {
      if (!viewer.partner) return emptyScope;
      const partnerId = viewer.partner.id;
      if (!viewer.account) {
        return {
          owningScope: { accountId: null, partnerId },
          apiKeys: { kind: 'partner', partnerId },
          campaigns: { kind: 'partner', partnerId },
          users: { kind: 'partner', partnerId },
          activity: { kind: 'partner', partnerId },
          directory: { kind: 'partner', partnerId },
        };
      }
      // This partner user is limited to one account.
      const accountId = viewer.account.id;
      return {
        owningScope: { accountId, partnerId },
        apiKeys: { kind: 'account', accountId, userId: viewer.id },
        campaigns: { kind: 'account', accountId },
        users: { kind: 'account', accountId, partnerId },
        activity: { kind: 'account', accountId },
        directory: nothing,
      };
    }
    case 'staff': {
      // Staff can always manage the directory, because a partner must exist before anyone can select it.
      if (!viewer.tenancy) return { ...emptyScope, users: { kind: 'staff' }, activity: { kind: 'service' }, directory: all };
      const { kind, id, partnerId } = viewer.tenancy;
      const access: Account | Partner = kind === 'account' ? { kind, accountId: id } : { kind, partnerId };
      return {
        owningScope: { accountId: kind === 'account' ? id : null, partnerId },
        apiKeys: { kind: 'tenancy', tenancy: { kind, id } },
        campaigns: access,
        users: { ...access, partnerId },
        activity: access,
        directory: all,
      };
    }
  }
}

/** Whether the viewer can see other users' keys. If not, the list doesn't show creators' names. */
export function seesOthersKeys(visibility: KeyVisibility): boolean {
  return visibility.kind !== 'own' && visibility.kind !== 'nothing';
}

/** Account users can read rules and add numbers, but not change anything else. @throws Problem `forbidden` */
export function requireAdministrator({ userType }: Viewer | Operator, action: string): void {
  if (userType === 'account') throw new Problem('forbidden', `Only partner users and service staff can ${action}.`);
}
