import type { DateTime } from 'luxon';
import type { CallState } from '#contract/calls/calls.ts';
import type { Named, TenancyKind, UserType } from '#contract/console.ts';

export type Account = Named & { partnerId: string };

export type Campaign = Named & { account: Named };

/** A partner, account or campaign as those see it who manage it, with the one above it. */
export type ManagedPartner = Named & { accounts: number };
export type ManagedAccount = Named & { partner: Named; campaigns: number };
export type ManagedCampaign = Named & { account: Named; partner: Named };

/** `externalId` is what an import has named it by; null without one. */
export type ExternalNamed = Named & { externalId: string | null };

/** The account or partner that a staff user has selected. `partnerId` is the partner itself, or the one above the account. */
export type Tenancy = Named & { kind: TenancyKind; partnerId: string; partnerName: string };

/**
 * Someone who signs in. An account user has an account; a partner user has a partner and may be tied to one account of it; a staff user has
 * neither.
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

export type ListedUser = User & { createdAt: DateTime; lastSignInAt: DateTime | null; disabledAt: DateTime | null; apiKeys: number };

/** What a deletion of a user would delete, too: their keys, the newest first, and the number of their sessions. */
export type DeletionImpact = { apiKeys: EndangeredKey[]; sessions: number };
export type EndangeredKey = { id: string; name: string; createdAt: DateTime; lastUsedAt: DateTime | null; queuedCalls: number };

export type UserInput = { email: string; name: string; userType: UserType; accountId: string | null; partnerId: string | null };
export type UserChange = Omit<UserInput, 'email'>;
export type NewUser = UserInput & { id: string; password: NewPassword; createdAt: DateTime };

/** An argon2id hash. `expiresAt` limits a password that someone else chose; it is null for one that the user chose. */
export type NewPassword = { hash: string; expiresAt: DateTime | null };

export type Credentials = { user: User; passwordHash: string; passwordExpiresAt: DateTime | null; disabledAt: DateTime | null };

export type Session = {
  user: User;
  tenancy: Tenancy | null;
  passwordChangeDue: boolean;
  startedAt: DateTime;
  lastSeenAt: DateTime;
};

/** The scope in which a key was created: a partner, or an account with the partner above it. */
export type OwningScope = { accountId: string | null; partnerId: string };

/** Who created a key. While they are disabled, it is refused. */
export type KeyOwner = Named & { email: string; isDisabled: boolean };

export type ApiKey = {
  id: string;
  name: string;
  creator: KeyOwner;
  owningScope: OwningScope;
  createdAt: DateTime;
  lastUsedAt: DateTime | null;
  expiresAt: DateTime | null;
  expiryTimeZone: string | null;
};

/** An account, or a partner with all accounts beneath it. */
export type Place = Named & { kind: TenancyKind };

/** A key with the scope that it was created in, and the one that it reaches now. */
export type ApiKeyDetails = { apiKey: ApiKey; createdIn: Place; reach: Place };

/** How many calls a key placed and cancelled in the quarter of an hour that begins at `quarterAt`, in epoch milliseconds. */
export type KeyUsage = { quarterAt: number; placed: number; cancelled: number };

/** How many calls that were placed in that quarter of an hour are in a state. */
export type CallCount = { quarterAt: number; state: CallState; calls: number };

/** A SHA-256, as 64 lower-case hexadecimal digits: of a key value or a session id, which storage never holds themselves. */
export type Digest = string;

/** The key of a request. The request must be answered by `deadline`, in milliseconds of `performance.now()`. */
export type Caller = { digest: Digest; deadline: number };

/** A placed call, as storage keeps it. Instants are epoch milliseconds. */
export type NewCall = {
  contactId: string;
  requestId: string;
  phone: string;
  name: string | null;
  timeZone: string | null;
  variables: Readonly<Record<string, string>> | null;
  notBefore: number | null;
  notAfter: number | null;
};

/** The two names of a call. */
export type CallReference = { contactId: string } | { requestId: string };

/** A call that the dialer has claimed until `leaseUntil`. Instants are epoch milliseconds. */
export type ClaimedCall = {
  contactId: string;
  requestId: string;
  campaignId: string;
  phone: string;
  name: string | null;
  timeZone: string | null;
  variables: Readonly<Record<string, string>>;
  placedAt: number;
  notBefore: number | null;
  notAfter: number | null;
  firstAttemptAt: number;
  /** The provider that has the call, or may have it. */
  provider: string;
  /** Counts the claims of this call. Storage ignores what an earlier claim reports. */
  attempt: number;
  /** How far the hand-off has come: see call-states.ts. */
  handoff: 'open' | 'doubt' | 'taken';
  leaseUntil: number;
};

export type ListedCall = {
  requestId: string;
  contactId: string;
  phone: string | null;
  name: string | null;
  state: CallState;
  detail: string | null;
  placedAt: DateTime;
  dialedAt: DateTime | null;
  endedAt: DateTime | null;
  /** The key that placed it, revoked or not; null if the viewer does not see that key. */
  apiKey: (Named & { creator: Named }) | null;
  isSimulated: boolean;
  campaign: Named;
};

/** What storage knows a call by. */
export type CallKey = { campaignId: string; contactId: string };

/** All that the service knows of a call to a person. */
export type ContactCall = CallKey & {
  campaignName: string;
  accountName: string;
  requestId: string;
  state: CallState;
  phone: string;
  name: string | null;
  timeZone: string | null;
  variables: Readonly<Record<string, string>>;
  notBefore: DateTime | null;
  notAfter: DateTime | null;
  placedAt: DateTime;
  dialedAt: DateTime | null;
  endedAt: DateTime | null;
  durationSeconds: number | null;
  detail: string | null;
};

export type CallDetails = {
  call: ListedCall;
  /** The contact's. */
  timeZone: string | null;
  variables: Readonly<Record<string, string>> | null;
  notBefore: DateTime | null;
  notAfter: DateTime | null;
  durationSeconds: number | null;
  /** How many times a dialer has claimed it. */
  attempts: number;
  firstAttemptAt: DateTime | null;
  /** Null unless it waits for a dialer. */
  nextAttemptAt: DateTime | null;
  /** When the provider reported the outcome of a call that was `unknown` until then. */
  toldLateAt: DateTime | null;
};

/** A page of a list: what its items have to contain, and after which one it begins. */
export type ListFilter = { search: string; cursor: string | null };

/**
 * What happened from one instant until before another, in epoch milliseconds; null without an end. Identifiers sort by time, so those that can be
 * in the range are one stretch of an index; the instants decide.
 */
export type InstantRange = { from: number | null; before: number | null; ids: { from: string | null; before: string | null } };

/** @property states empty for all of them */
export type CallFilter = { placed: InstantRange; states: readonly CallState[]; apiKey: string | null; search: string };

export type ActivityFilter = {
  at: InstantRange;
  /** Null for everyone; its `id` is null for the operator. */
  actor: { id: string | null } | null;
  action: string | null;
  /** The id of what it was done to. */
  subject: string | null;
};

/** The oldest call of a stretch that was looked through; null if there are no older ones. */
export type StretchEnd = { contactId: string; placedAt: DateTime<true> } | null;

/** The matching calls in a stretch. */
export type CallStretch = { calls: ListedCall[]; end: StretchEnd };

export type AuditAction =
  | 'session.started'
  | 'session.ended'
  | 'session.refused'
  | 'session.revoked'
  | 'tenancy.selected'
  | 'password.changed'
  | 'password.reset'
  | 'api-key.created'
  | 'api-key.revoked'
  | 'user.added'
  | 'user.changed'
  | 'user.disabled'
  | 'user.enabled'
  | 'user.deleted'
  | 'partner.added'
  | 'partner.changed'
  | 'account.added'
  | 'account.changed'
  | 'campaign.added'
  | 'campaign.changed'
  | 'contact.erased'
  | 'contact.exported'
  | 'list.exported'
  | 'retention.run'
  | 'backup.created'
  | 'audit.pruned'
  | 'clock.accepted';

export type AuditSubject = Named & {
  kind:
    | 'api-key'
    | 'user'
    | 'session'
    | 'partner'
    | 'account'
    | 'campaign'
    | 'contact'
    | 'list'
    | 'call-log'
    | 'backup'
    | 'audit-log'
    | 'clock';
};

/** Who did what, when and from where. Never holds a secret. */
export type AuditEvent = {
  id: string;
  at: DateTime;
  /** Null for the operator, on the machine itself. */
  actor: Named | null;
  action: AuditAction;
  subject: AuditSubject;
  /** Null if the event belongs to the service and not to a partner. */
  owningScope: OwningScope | null;
  /** The caller's network address, or `local`. */
  address: string;
};

/** The action is any text: an older or newer release may have written it. */
export type ListedEvent = Omit<AuditEvent, 'owningScope' | 'action'> & { action: string };

/** An audit event with its place in the chain, as storage keeps it. `fields` are all that it says, in a fixed order. */
export type ChainedEvent = { seq: number; hash: string; at: number; fields: readonly (string | number | null)[] };

/** Names a state of the chain: what comes up to it cannot change without changing the hash. */
export type Seal = { seq: number; hash: string };

/** After how many days contact data of ended calls, and audit events, are erased; null keeps them. */
export type RetentionDays = Readonly<{ contacts: number | null; auditEvents: number | null }>;

/** Who acts, and from where. */
export type Actor = { who: Named | null; address: string };

export type ImportKind = 'partners' | 'accounts' | 'campaigns' | 'users';

/** A partner, account, campaign or user of an import file. A field that its kind does not have is null. */
export type ImportedThing = {
  externalId: string;
  id: string;
  name: string;
  partnerId: string | null;
  accountId: string | null;
  email: string | null;
  userType: string | null;
};

export type ImportAddition = { thing: ImportedThing; password: NewPassword | null; event: AuditEvent };
export type ImportChange = { thing: ImportedThing; event: AuditEvent };

/** The provider takes no calls. Instants are epoch milliseconds. */
export type DialerTrouble = {
  /** Of the first hand-off that it didn't take. */
  since: number;
  /** Why it didn't take the last one, without its own words: they may be about one call. */
  reason: string;
};
