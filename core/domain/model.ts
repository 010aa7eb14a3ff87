import type { CallState } from '#contract/calls/calls.ts';
import type { AnsweredBy } from '#contract/calls/dialer.ts';
import type { AuditAction } from '#contract/console/activity.ts';
import type { Named, TenancyKind, UserType } from '#contract/console/common.ts';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { ContactLimits, HeldFor, Pace, StopScope } from '#contract/protection/dialing.ts';
import type { DoNotCallReason, DoNotCallSource } from '#contract/protection/do-not-call.ts';
import type { RestrictedKind } from '#contract/protection/numbers.ts';
import type { ProtectionScope } from '#contract/protection/protection.ts';
import type { Millis } from './instant.ts';

export type Account = Named & { partnerId: string };

export type Campaign = Named & { account: Named };

/** A partner, account or campaign as its managers see it, with its parent. */
export type ManagedPartner = Named & { accounts: number };
export type ManagedAccount = Named & { partner: Named; campaigns: number };
export type ManagedCampaign = Named & { account: Named; partner: Named; settings: Record<string, string> };
export type Managed = { partner: ManagedPartner; account: ManagedAccount; campaign: ManagedCampaign };

/** What a staff user has selected. `partnerId` is the partner itself, or the account's partner. */
export type Tenancy = Named & { kind: TenancyKind; partnerId: string; partnerName: string };

/**
 * Someone who can sign in. An account user has an account; a partner user has a partner and may be limited to one of its accounts; a staff
 * user has neither.
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

/** Someone who runs `admin` on the server itself. */
export type Operator = { userType: 'operator' };

/** @property partnerName the name of the partner of the user's account, or of the user's own partner; null for staff */
export type ListedUser = User & {
  partnerName: string | null;
  createdAt: Millis;
  lastSignInAt: Millis | null;
  disabledAt: Millis | null;
  apiKeys: number;
  link: Link | null;
  hasSecondFactor: boolean;
  signInVersion: SignInVersion;
};

/** Changes with every change of how a user signs in: see sign-in/sessions.ts. */
export type SignInVersion = string;

/** A user to change. `signInVersion` is the one that the user must still have; if it's missing, any will do. */
export type TargetUser = Pick<User, 'id'> & { signInVersion?: SignInVersion };

/** An identity at an OpenID Connect provider. Neither field identifies someone alone. */
export type Subject = { issuer: string; subject: string };

export type Link = Subject & { linkedAt: Millis };

/** What a user proved in order to start a session: the password, a code after the password, or a linked identity. */
export type Proof =
  | Pick<Credentials, 'user' | 'hasSecondFactor' | 'signInVersion'>
  | { halfOpen: { id: Digest; data: Session }; code: string; vouched: string | null }
  | LinkProof;
export type LinkProof = Subject & { user: User; signInVersion: SignInVersion };

/** A code that the app exchanges for its own session. Only its digest is stored. */
export type SignInCode = Subject & { digest: Digest; userId: string; signInVersion: SignInVersion; challenge: string; expiresAt: Millis };

/** What would be deleted with a user: a page of the user's keys, newest first, and the number of sessions. */
export type DeletionImpact = {
  apiKeys: (Pick<ApiKey, 'id' | 'name' | 'createdAt' | 'lastUsedAt' | 'expiresAt'> & { queuedCalls: number })[];
  sessions: number;
};

export type UserInput = { email: string; name: string; userType: UserType; accountId: string | null; partnerId: string | null };
export type UserChange = Omit<UserInput, 'email'>;
export type NewUser = UserInput & { id: string; password: NewPassword; createdAt: Millis };

/**
 * An argon2id hash. `expiresAt` is null for a password that the user chose.
 *
 * @property isHandedOut whether someone has handed the password out. Without it, the user replaces one that may have been handed out
 */
export type NewPassword = { hash: string; expiresAt: Millis | null; isHandedOut?: boolean };

export type Credentials = {
  user: User;
  passwordHash: string;
  passwordExpiresAt: Millis | null;
  disabledAt: Millis | null;
  hasSecondFactor: boolean;
  signInVersion: SignInVersion;
};

export type Session = {
  user: User;
  tenancy: Tenancy | null;
  passwordChangeDue: boolean;
  /** The identity provider that the user signed in with; null for a password. */
  issuer: string | null;
  /** The user was linked to the identity right before, so they haven't used this account yet. */
  beganWithLink: boolean;
  hasSecondFactor: boolean;
  signInVersion: SignInVersion;
  /** Set while the session waits for a code. */
  halfOpenUntil: Millis | null;
  startedAt: Millis;
  lastSeenAt: Millis;
};

/** What's needed to use up a correct code: the time step of one from the app, or the digest of a recovery code. */
export type CheckedCode = { kind: 'step'; step: number } | { kind: 'recovery'; digest: Digest };

/** The scope in which a key was created: a partner, or an account with its partner. */
export type OwningScope = { accountId: string | null; partnerId: string };

/** Someone whom others see. @property email null once the user has been deleted */
export type Person = Named & { email: string | null; isStaff: boolean };

/** The user who created a key. While they're disabled, the key is refused. */
type KeyOwner = Person & { isDisabled: boolean; lastSignInAt: Millis | null };

export type ApiKey = {
  id: string;
  name: string;
  creator: KeyOwner;
  owningScope: OwningScope;
  /** The scope of new audit events about the key. If its creator has moved to another partner, that partner's users see them. */
  eventScope: OwningScope;
  createdAt: Millis;
  lastUsedAt: Millis | null;
  expiresAt: Millis | null;
  expiryTimeZone: string | null;
  /** The creator's time zone. `limits` counts calls by the days of this zone. */
  timeZone: string;
  /** When the key got its daily call limit. */
  callsCountedFrom: Millis | null;
  limits: KeyLimits | null;
};

/** The limits of a key. At least one of them is set. */
export type KeyLimits = {
  /** Changes with each change of the limits, and is never reused. */
  version: string;
  /** The networks from which the key is accepted, in CIDR notation; null for any address. */
  addresses: readonly string[] | null;
  callsPerDay: number | null;
  timeZone: string;
};

/** An account, or a partner with all its accounts. */
export type Place = Named & { kind: TenancyKind };

/** @property reach the scope that the key has access to now */
export type ApiKeyDetails = { apiKey: ApiKey; createdIn: Place; reach: Place; lastUsedAddress: string | null };

/** Counts calls placed in the quarter-hour that begins at `quarterAt`. */
export type CallCount = { quarterAt: Millis; state: CallState; answeredBy: AnsweredBy | null; calls: number };

/** A SHA-256 hash in 64 lower-case hexadecimal digits. Storage has only this of a key value or session ID. */
export type Digest = string;

/** What a process last read about a key. It doesn't decide anything: the statement that does the work checks whether it's still true. */
export type ActiveKey = {
  /** Null if it doesn't expire. Never changes after creation. */
  expiresAt: Millis | null;
  /** Storage updates this when a statement finds that the limits have changed. */
  limits: KeyLimits | null;
  /** The last day on which the key has placed all its calls, if there was one. */
  fullOn?: string;
};

/** A placed call, as it's stored. */
export type NewCall = {
  contactId: string;
  requestId: string;
  phone: string;
  name: string | null;
  timeZone: string | null;
  variables: Readonly<Record<string, string>> | null;
  notBefore: Millis | null;
  notAfter: Millis | null;
};

/** Never changes until it's erased. */
type StoredCall = Omit<NewCall, 'variables'> & { campaignId: string; variables: Readonly<Record<string, string>>; placedAt: Millis };

/**
 * The rules that apply to a campaign's calls.
 *
 * @property version changes with any rule of the partner, its accounts and their campaigns; null if none of them has ever had rules
 * @property countries empty for all
 * @property kinds the restricted kinds that may be called
 */
export type CampaignRules = {
  version: number | null;
  hours: readonly HoursRule[];
  /** The ID of the scope that has the hours; null if there are none. */
  hoursFrom: string | null;
  countries: readonly string[];
  kinds: readonly RestrictedKind[];
  /** The paces of the campaign and of its account that aren't null. */
  paces: readonly ScopePace[];
  contactLimits: ScopeContactLimits | null;
};

/** A scope with a pace: the server, whose ID is empty, an account or a campaign. */
export type ScopePace = Pace & { scopeId: string; accountId: string | null; campaignId: string | null };
/** The calls that limits count: those of an account or, for a partner's limits, of all its accounts. */
export type ScopeContactLimits = { limits: ContactLimits; scope: ProtectionScope; scopeId: string; counts: OwningScope };

export type DialingStop = {
  id: string;
  scope: StopScope;
  target: Named | null;
  /** Null for the server. `owner.accountId` is null for a partner. */
  owner: OwningScope | null;
  at: Millis;
  by: Named | null;
  byType: Viewer['userType'] | Operator['userType'];
  reason: string | null;
};

/** Why a call can't be made at all. */
export type Objection =
  | { kind: 'number-kind'; numberKind: RestrictedKind }
  | { kind: 'country'; country: string | null }
  /** Calling hours apply. */
  | { kind: 'unknown-time-zone' }
  /** Calling hours don't allow the call in time. `opensAt` is null if they don't open within 31 days. */
  | { kind: 'outside-calling-hours'; opensAt: Millis | null }
  /** The number has had as many calls as it may have in the time that's left. */
  | { kind: 'contact-limit' }
  /** Dialing was stopped, or the pace was too slow, for as long as a call without `notAfter` may wait. */
  | { kind: 'stop' | 'pace' };

/** Why calls were stopped, for the metrics. */
export const stopReasons = ['do-not-call', 'number', 'calling-hours', 'contact-limit', 'stop', 'pace'] as const;
export type StopReason = (typeof stopReasons)[number];

/** A number that an account, or all accounts of a partner, must not call. @property endsAt null if the entry doesn't end */
export type DoNotCallEntry = {
  id: string;
  phone: string;
  scope: Place;
  reason: DoNotCallReason;
  note: string | null;
  source: DoNotCallSource;
  call: CallKey | null;
  createdBy: Named | null;
  createdAt: Millis;
  endsAt: Millis | null;
};

/** What rules belong to. `owner.accountId` is null only for a partner. */
export type RuleScope = Named & { kind: ProtectionScope; owner: OwningScope };

/** A number from an import, with the details from its line. */
export type ImportedNumber = Pick<DoNotCallEntry, 'phone'> &
  Partial<Pick<DoNotCallEntry, 'reason' | 'note' | 'source' | 'createdAt' | 'endsAt'>>;

/** Numbers for one list. The other fields apply to each number that doesn't have its own value. */
export type NewDoNotCall = Omit<DoNotCallEntry, 'id' | 'phone' | 'scope'> & {
  owner: OwningScope;
  numbers: readonly ({ id: string } & ImportedNumber)[];
};

export type ImportedNumbers = Omit<NewDoNotCall, 'numbers'>;

export type CallReference = { contactId: string } | { requestId: string };

/** A call's campaign as a provider gets it. */
export type CallCampaign = Named & { settings: Readonly<Record<string, string>>; account: Named; partner: Named };

/**
 * When a call may leave within its paces, in ms of `performance.now()`, which never steps. If it can't leave by then, it waits for another
 * turn, because the next call leaves at a fixed distance.
 */
export type DepartureTime = { at: number; by: number };

/** @property claimedAt right before its claim was saved, in ms of `performance.now()` @property leaves null if it has no pace */
export type ClaimedCall = StoredCall & {
  campaign: CallCampaign;
  claimedAt: number;
  leaves: DepartureTime | null;
  firstAttemptAt: Millis;
  /** The provider that has, or may have, the call. */
  provider: string;
  /** The number of this claim (see call-states.ts). Storage ignores results of an earlier claim. */
  attempt: number;
  /** See call-states.ts. */
  handoff: 'open' | 'doubt' | 'taken';
  leaseUntil: Millis;
  /** Why the call must not be handed off again, even if the provider doesn't have it; null if it may be. */
  stopped: string | null;
};

export type ListedCall = {
  requestId: string;
  contactId: string;
  phone: string | null;
  name: string | null;
  state: CallState;
  detail: string | null;
  placedAt: Millis;
  dialedAt: Millis | null;
  endedAt: Millis | null;
  /** The key that placed the call, revoked or not; null if the viewer can't see that key. */
  apiKey: (Named & { creator: Named }) | null;
  isSimulated: boolean;
  /** Null if the call isn't held, and if a stop or a pace holds it, because that time isn't known. */
  heldUntil: Millis | null;
  heldFor: HeldFor | null;
  /** Whether contact limits don't allow the call in time, so that it lapses at `heldUntil`. */
  lapses: boolean;
  /** When the number was last called, if contact limits hold the call because of that. */
  lastCalledAt?: Millis | undefined;
  answeredBy: AnsweredBy | null;
  timeZone: string | null;
  campaign: Named;
};

export type CallKey = { campaignId: string; contactId: string };

/** Everything that's stored about a call to a person. */
export type ContactCall = StoredCall &
  Pick<ListedCall, 'state' | 'dialedAt' | 'endedAt' | 'detail'> & {
    campaignName: string;
    accountName: string;
    durationSeconds: number | null;
  };

export type CallDetails = {
  call: ListedCall;
  variables: Readonly<Record<string, string>> | null;
  notBefore: Millis | null;
  notAfter: Millis | null;
  durationSeconds: number | null;
  attempts: number;
  firstAttemptAt: Millis | null;
  /** Null unless the call is waiting for a dialer, and won't lapse first. Also null while a stop or a pace holds it. */
  nextAttemptAt: Millis | null;
  toldLateAt: Millis | null;
};

/** @property cursor the item after which the page starts */
export type ListFilter = { search: string; cursor: string | null };

/** The start or end of a time range. For the IDs, see `Randomness.idsAround`. */
export type RangeEnd = { at: Millis; lowestId: string; highestId: string };
/** A time range of a day or more: includes `from`, excludes `before`; null means open. */
export type InstantRange = { from: RangeEnd | null; before: RangeEnd | null };

/** @property states empty for all states */
export type CallFilter = { placed: InstantRange; states: readonly CallState[]; apiKey: string | null; search: string };

export type ActivityFilter = {
  at: InstantRange;
  /** Null for all actors; its `id` is null for the operator. */
  actor: { id: string | null } | null;
  action: string | null;
  /** An ID. */
  subject: string | null;
};

/** The oldest call of a stretch (see `CallListStore.list`), after which the next stretch begins; null if there are no older calls. */
export type StretchEnd = { contactId: string; placedAt: Millis } | null;

export type CallStretch = { calls: ListedCall[]; end: StretchEnd };

export type AuditSubject = Named & {
  kind:
    | 'api-key'
    | 'user'
    | 'session'
    | 'partner'
    | 'account'
    | 'campaign'
    | 'server'
    | 'contact'
    | 'list'
    | 'call-log'
    | 'backup'
    | 'audit-log'
    | 'clock'
    | 'do-not-call';
};

/** Never contains a secret. */
export type AuditEvent = {
  id: string;
  at: Millis;
  /** Null for the operator on the server itself. */
  actor: Named | null;
  action: AuditAction;
  subject: AuditSubject;
  /** Null if the event belongs to the service and not to a partner. */
  owningScope: OwningScope | null;
  /** The caller's network address, or `local`. */
  address: string;
  /** What has changed, or why. */
  detail?: string | undefined;
  /** The session that makes the change, which must not have ended. Isn't stored. */
  session?: Digest;
  /** Set if the change counts against its user's budget. Isn't stored. */
  budget?: Budget | null;
};

/** The start of the hour in which a user's earlier changes count: see audit.ts. `lowestId` is the lowest ID of an event in it. */
export type Budget = { since: Millis; lowestId: string };

/** The action can be any text, because an older or newer release may have written it. */
export type ListedEvent = Omit<AuditEvent, 'owningScope' | 'action' | 'actor' | 'session' | 'budget'> & {
  action: string;
  actor: Person | null;
};

/** `fields` contains all of an event's data, in a fixed order. */
export type ChainedEvent = { seq: number; hash: string; at: Millis; fields: readonly (string | number | null)[] };

/** Identifies a state of the chain: no event up to it can change without changing the hash. */
export type Seal = { seq: number; hash: string };

/** How many days the contact data of ended calls, and audit events, are kept; null for no limit. */
export type RetentionDays = Readonly<{ contacts: number | null; auditEvents: number | null }>;

/** The session must still be there when the change is made. */
export type Actor = { who: Named | null; address: string; session?: Digest };

/** `viewer` says what someone may see and do, and `actor` how it's recorded. */
export type Caller = { viewer: Viewer | Operator; actor: Actor };
export type SignedInCaller = Caller & { viewer: Viewer };

export type ImportKind = 'partners' | 'accounts' | 'campaigns' | 'users';

/** A partner, account, campaign or user in an import file. Fields that its kind doesn't have are null. */
export type ImportedEntity = {
  externalId: string;
  id: string;
  name: string;
  partnerId: string | null;
  accountId: string | null;
  email: string | null;
  userType: string | null;
  disabled: boolean | null;
};

/** @property disabling records that a user was disabled or enabled; null if that doesn't change */
export type ImportAddition = { entity: ImportedEntity; password: NewPassword | null; event: AuditEvent; disabling: AuditEvent | null };
/** @property event null if the user is only disabled or enabled @property unlinking null unless the user's email address changes */
export type ImportChange = {
  entity: ImportedEntity;
  event: AuditEvent | null;
  unlinking: AuditEvent | null;
  disabling: AuditEvent | null;
};
/** What a changed user has lost. */
export type EndedSignIn = { sessions: number; unlinked: boolean };

/** The provider isn't accepting calls. */
export type DialerTrouble = {
  /** When the first of these hand-offs in a row failed. */
  since: Millis;
  /** Why the last one did. Doesn't quote the provider, because its message may contain details of a call. */
  reason: string;
};
