import type { Named } from '#contract/console/common.ts';
import type { CampaignAccess, DirectoryAccess, UserVisibility } from '../directory/scope.ts';
import type { Millis } from '../instant.ts';
import type {
  Account,
  AuditEvent,
  Campaign,
  Credentials,
  DeletionImpact,
  EndedSignIn,
  ExternalNamed,
  ImportAddition,
  ImportChange,
  ImportedEntity,
  ImportKind,
  ListedUser,
  ListFilter,
  ManagedAccount,
  ManagedCampaign,
  ManagedPartner,
  NewPassword,
  NewUser,
  TargetUser,
  Tenancy,
  UserChange,
} from '../model.ts';
import type { TimePosition } from '../paging.ts';
import type { RevokeOptions } from './keys.ts';

export type UserFilter = { search: string; awaySince: Millis | null };

export type UserStore = {
  count(): Promise<number>;
  /**
   * Lists visible users whose name or email address contains the text, oldest first.
   *
   * @param filter.awaySince lists only users who haven't signed in since then; null for all
   */
  list(visibility: UserVisibility | { kind: 'all' }, filter: UserFilter, after: TimePosition | null, limit: number): Promise<ListedUser[]>;
  /** Finds a user, and waits until what was read is in effect on all nodes of the database. */
  find(visibility: UserVisibility | { kind: 'all' }, id: string): Promise<ListedUser | null>;
  /** Returns the user's keys, newest first, and the number of sessions. */
  deletionImpact(userId: string, after: TimePosition | null, limit: number): Promise<DeletionImpact>;
  findByEmail(email: string): Promise<Credentials | null>;
  /** @throws Problem `conflict` if the email address is taken */
  create(user: NewUser, event: AuditEvent): Promise<void>;
  /**
   * Sets the password, and ends the user's sessions except the one that the change is made in.
   *
   * @returns false, without changing anything, if the user isn't as expected
   */
  setPassword(user: TargetUser, password: NewPassword, event: AuditEvent): Promise<boolean>;
  /**
   * Changes the user's name, type, account and partner. Ends the user's sessions, unless only the name changes. The access of the user's keys changes immediately. If there are more than a
   * thousand keys, the lists that show them change in batches.
   *
   * @param before the values that the user must still have
   * @returns false, without changing anything, if someone else has changed the user, or the user doesn't exist
   */
  change(userId: string, before: UserChange, changed: UserChange, event: AuditEvent): Promise<boolean>;
  /**
   * Disables the user and their keys, and ends the user's sessions; null re-enables them.
   *
   * @returns the number of sessions it ended, or null if nothing changed or the user isn't as expected
   */
  setDisabled(user: TargetUser, disabledAt: Millis | null, event: AuditEvent): Promise<number | null>;
  /**
   * Deletes the user and their keys and sessions, with immediate effect. If there are more than a thousand keys, the remaining rows are
   * deleted later, in batches.
   *
   * @returns the numbers of deleted keys and sessions, or null if the user isn't as expected
   */
  delete(user: TargetUser, options: RevokeOptions, event: AuditEvent): Promise<{ apiKeys: number; sessions: number } | null>;
  /** Deletes the remaining data of deleted users, in small batches. @returns the number of keys */
  finishDeletions(signal: AbortSignal): Promise<number>;
  /** Finishes moving users' keys to the lists of their new partners, in small batches. @returns the number of keys */
  finishMoves(signal: AbortSignal): Promise<number>;
};

export type TenancyStore = {
  findPartner(id: string): Promise<Named | null>;
  findAccount(id: string): Promise<Account | null>;
  findTenancy(choice: Pick<Tenancy, 'kind' | 'id'>): Promise<Tenancy | null>;
  createPartner(partner: Named, event: AuditEvent): Promise<void>;
  createAccount(account: Account, event: AuditEvent): Promise<void>;
  createCampaign(campaign: Named & { accountId: string }, event: AuditEvent): Promise<void>;
  /** Lists all partners by name, for the operator. */
  allPartners(): Promise<ExternalNamed[]>;
  allAccounts(): Promise<(ExternalNamed & { partner: Named })[]>;
  allCampaigns(): Promise<(ExternalNamed & { account: Named })[]>;
  /** Lists by name, after the cursor. */
  listAccounts(access: CampaignAccess, filter: ListFilter, limit: number): Promise<Named[]>;
  /** Lists campaigns by account and name. Searches the names of both, and finds a campaign by its ID. */
  listCampaigns(access: CampaignAccess, filter: ListFilter, limit: number): Promise<Campaign[]>;
  /** Lists the best matches first. */
  search(text: string, limit: number): Promise<Tenancy[]>;
};

/** Something that belongs to a partner, account or campaign. @property count null if it isn't counted, because there may be millions */
export type Belonging = { noun: string; count: number | null };

/** Manages partners, accounts and campaigns. */
export type DirectoryStore = {
  /**
   * Creates the first partner, account and campaign: either all of them or none.
   *
   * @returns false, without creating anything, if a partner already exists. If several processes try at the same time, only one succeeds
   */
  setUp(
    partner: Named,
    account: Account,
    campaign: Named & { accountId: string },
    events: readonly [AuditEvent, ...AuditEvent[]],
  ): Promise<boolean>;
  /** @returns false if the partner, account or campaign doesn't exist */
  rename(kind: 'partner' | 'account' | 'campaign', entity: Named, event: AuditEvent): Promise<boolean>;
  /**
   * Deletes a partner, account or campaign that nothing belongs to.
   *
   * @returns what belongs to it, if it wasn't deleted because of that; null if it doesn't exist
   */
  delete(kind: 'partner' | 'account' | 'campaign', id: string, event: AuditEvent): Promise<Belonging[] | null>;
  /** Lists by name, after the cursor. */
  partners(access: DirectoryAccess, filter: ListFilter, limit: number): Promise<ManagedPartner[]>;
  /** Lists accounts by partner and name. @param partnerId null for the accounts of all partners */
  accounts(access: DirectoryAccess, partnerId: string | null, filter: ListFilter, limit: number): Promise<ManagedAccount[]>;
  /** Lists campaigns by partner, account and name. @param accountId null for the campaigns of all accounts */
  campaigns(access: DirectoryAccess, accountId: string | null, filter: ListFilter, limit: number): Promise<ManagedCampaign[]>;
  findPartner(access: DirectoryAccess, id: string): Promise<ManagedPartner | null>;
  findAccount(access: DirectoryAccess, id: string): Promise<ManagedAccount | null>;
  findCampaign(access: DirectoryAccess, id: string): Promise<ManagedCampaign | null>;
};

export type ImportStore = {
  /** Returns existing entities by external ID. */
  find(kind: ImportKind, externalIds: readonly string[]): Promise<Map<string, ImportedEntity>>;
  /** Returns the external IDs of the users with these email addresses, by address; null for a user who wasn't imported. */
  findEmails(emails: readonly string[]): Promise<Map<string, string | null>>;
  /**
   * Writes an entire step or nothing. A user who gets another email address loses the link to an identity at the provider.
   *
   * @returns what changed users have lost, by their IDs
   * @throws Problem `conflict` if something else has changed the same entities since they were read
   */
  write(kind: ImportKind, step: { added: readonly ImportAddition[]; changed: readonly ImportChange[] }): Promise<Map<string, EndedSignIn>>;
};
