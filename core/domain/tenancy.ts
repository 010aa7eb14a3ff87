import type { Named, TenancyKind, UserType } from '#contract/console.ts';

/** The account or partner that a staff user has selected. `partnerId` is the partner itself, or the one above the account. */
export type Tenancy = Named & { kind: TenancyKind; partnerId: string };

export type Account = Named & { partnerId: string };

/**
 * A person who signs in. An account user has an account; a partner user has a partner and may be tied to one account beneath it;
 * a staff user has neither.
 */
export type User = {
  id: string;
  email: string;
  name: string;
  userType: UserType;
  account: Account | null;
  partner: Named | null;
};

/** A signed-in user. Only staff have a tenancy. */
export type Viewer = User & { tenancy: Tenancy | null };

/** The scope in which a key was made: a partner, or an account with the partner above it. */
export type OwningScope = { accountId: string | null; partnerId: string };

/** Some accounts: one, all beneath a partner, or none. */
export type CampaignAccess = { kind: 'account'; accountId: string } | { kind: 'partner'; partnerId: string } | { kind: 'nothing' };

/** Whose keys a viewer sees and revokes. */
export type KeyVisibility =
  | { kind: 'own'; userId: string }
  /** Keys made in one account's scope by anyone, plus the viewer's own. */
  | { kind: 'account'; accountId: string; userId: string }
  /** Keys of every user who is under the partner now, and those that staff made in its scope or in one of its accounts'. */
  | { kind: 'partner'; partnerId: string }
  /** Keys made in one account's scope, or in a partner's and those of its accounts. */
  | { kind: 'home'; tenancy: { kind: TenancyKind; id: string } }
  /** Every key there is: the operator's sight, on the machine itself. */
  | { kind: 'all' }
  | { kind: 'nothing' };

/** Which users a viewer sees, adds and deletes. */
export type UserVisibility =
  | { kind: 'account'; accountId: string; partnerId: string }
  | { kind: 'partner'; partnerId: string }
  /** The service's own staff. */
  | { kind: 'staff' }
  | { kind: 'nothing' };

/** Whose doings a viewer sees. */
export type ActivityVisibility =
  | { kind: 'own'; userId: string }
  | { kind: 'account'; accountId: string }
  | { kind: 'partner'; partnerId: string }
  /** What belongs to no partner. */
  | { kind: 'service' }
  | { kind: 'nothing' };

/** What a user may see and act on. */
export type TenancyScope = {
  /** Where a key made now belongs; null where none can be made. */
  home: OwningScope | null;
  apiKeys: KeyVisibility;
  campaigns: CampaignAccess;
  people: UserVisibility;
  activity: ActivityVisibility;
};

const none = { kind: 'nothing' } as const;
const nothing: TenancyScope = { home: null, apiKeys: none, campaigns: none, people: none, activity: none };

/** The one place that says what each type of user sees. What a *key* reaches is said once in storage, where it is enforced. */
export function scopeOf(viewer: Viewer): TenancyScope {
  switch (viewer.userType) {
    case 'account': {
      if (!viewer.account) return nothing;
      const { id: accountId, partnerId } = viewer.account;
      return {
        home: { accountId, partnerId },
        apiKeys: { kind: 'own', userId: viewer.id },
        campaigns: { kind: 'account', accountId },
        people: none,
        // A teammate's keys are not to be seen, nor what is done with them.
        activity: { kind: 'own', userId: viewer.id },
      };
    }
    case 'partner': {
      if (!viewer.partner) return nothing;
      const partnerId = viewer.partner.id;
      if (!viewer.account) {
        return {
          home: { accountId: null, partnerId },
          apiKeys: { kind: 'partner', partnerId },
          campaigns: { kind: 'partner', partnerId },
          people: { kind: 'partner', partnerId },
          activity: { kind: 'partner', partnerId },
        };
      }
      const accountId = viewer.account.id;
      return {
        home: { accountId, partnerId },
        apiKeys: { kind: 'account', accountId, userId: viewer.id },
        campaigns: { kind: 'account', accountId },
        people: { kind: 'account', accountId, partnerId },
        activity: { kind: 'account', accountId },
      };
    }
    case 'staff': {
      if (!viewer.tenancy) return { ...nothing, people: { kind: 'staff' }, activity: { kind: 'service' } };
      const { kind, id, partnerId } = viewer.tenancy;
      const reach: Exclude<CampaignAccess, { kind: 'nothing' }> = kind === 'account' ? { kind, accountId: id } : { kind, partnerId };
      return {
        home: { accountId: kind === 'account' ? id : null, partnerId },
        apiKeys: { kind: 'home', tenancy: { kind, id } },
        campaigns: reach,
        people: reach.kind === 'account' ? { ...reach, partnerId } : reach,
        activity: reach,
      };
    }
  }
}

/** Whether the viewer can see keys of other users: only then do rows carry an owner. */
export function seesOthersKeys(sight: KeyVisibility): boolean {
  return sight.kind !== 'own' && sight.kind !== 'nothing';
}
