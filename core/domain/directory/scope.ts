import type { TenancyKind } from '#contract/console/common.ts';
import type { OwningScope, Viewer } from '../model.ts';

/** Access to the campaigns of one account, of all accounts of a partner, or to none. */
export type CampaignAccess = { kind: 'account'; accountId: string } | { kind: 'partner'; partnerId: string } | { kind: 'nothing' };

/** The keys that a viewer can see and revoke. */
export type KeyVisibility =
  | { kind: 'own'; userId: string }
  /** Keys that anyone created in the account's scope, and all of the viewer's own keys. */
  | { kind: 'account'; accountId: string; userId: string }
  /** Keys of all users who are under the partner now, and keys that staff created for the partner or one of its accounts. */
  | { kind: 'partner'; partnerId: string }
  /** Keys created in the scope of an account, or of a partner and its accounts. */
  | { kind: 'tenancy'; tenancy: { kind: TenancyKind; id: string } }
  /** For the operator on the server itself. */
  | { kind: 'all' }
  | { kind: 'nothing' };

/** The users that a viewer can see, create and delete. */
export type UserVisibility =
  | { kind: 'account'; accountId: string; partnerId: string }
  | { kind: 'partner'; partnerId: string }
  /** The service's own staff. */
  | { kind: 'staff' }
  | { kind: 'nothing' };

/** The audit events that a viewer can see. */
export type ActivityVisibility =
  | { kind: 'own'; userId: string }
  | { kind: 'account'; accountId: string }
  | { kind: 'partner'; partnerId: string }
  /** Events that don't belong to a partner. */
  | { kind: 'service' }
  | { kind: 'nothing' };

/** The accounts and campaigns that a viewer can create and rename. Partners can be managed only with `all`. */
export type DirectoryAccess = { kind: 'all' } | { kind: 'partner'; partnerId: string } | { kind: 'nothing' };

/** Everything that a viewer can see and change. */
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
const emptyScope: TenancyScope = {
  owningScope: null,
  apiKeys: nothing,
  campaigns: nothing,
  users: nothing,
  activity: nothing,
  directory: nothing,
};

/**
 * The only code that decides what each type of user can see. A partner user who's limited to one account sees that account and its users
 * instead of all of the partner's, and the keys that were created for the account as well as their own. storage/keys/authorization.ts
 * decides what a *key* has access to, and treats all partner users alike.
 */
export function scopeFor(viewer: Viewer): TenancyScope {
  switch (viewer.userType) {
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
      const directory = { kind: 'all' } as const;
      if (!viewer.tenancy) return { ...emptyScope, users: { kind: 'staff' }, activity: { kind: 'service' }, directory };
      const { kind, id, partnerId } = viewer.tenancy;
      const access: Exclude<CampaignAccess, { kind: 'nothing' }> = kind === 'account' ? { kind, accountId: id } : { kind, partnerId };
      return {
        owningScope: { accountId: kind === 'account' ? id : null, partnerId },
        apiKeys: { kind: 'tenancy', tenancy: { kind, id } },
        campaigns: access,
        users: { ...access, partnerId },
        activity: access,
        directory,
      };
    }
  }
}

/** Whether the viewer can see other users' keys. If not, the list doesn't show creators' names. */
export function seesOthersKeys(visibility: KeyVisibility): boolean {
  return visibility.kind !== 'own' && visibility.kind !== 'nothing';
}
