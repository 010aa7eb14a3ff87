import type { CallState } from '#contract/calls/calls.ts';
import type { AnsweredBy, OutcomeState } from '#contract/calls/dialer.ts';
import type { Named, TenancyKind, UserType } from '#contract/console/common.ts';
import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { ContactLimits, HeldFor, Pace, StopScope } from '#contract/protection/dialing.ts';
import type { DoNotCallReason, DoNotCallSource } from '#contract/protection/do-not-call.ts';
import type { RestrictedKind } from '#contract/protection/numbers.ts';
import type { OptOutScope, ProtectionScope } from '#contract/protection/protection.ts';
import type { Settlement } from './calls/call-states.ts';
import type { ActivityVisibility, CampaignAccess, DirectoryAccess, KeyVisibility, UserVisibility } from './directory/scope.ts';
import type { Millis } from './instant.ts';
import type {
  Account,
  ApiKey,
  AuditEvent,
  Credentials,
  Digest,
  KeyLimits,
  Operator,
  OwningScope,
  Person,
  Session,
  SignInVersion,
  Subject,
  Tenancy,
  User,
  Viewer,
} from './model.ts';
import type { PhonePosition, TimePosition } from './paging.ts';

export type Stores = {
  apiKeys: ApiKeyStore;
  calls: CallStore;
  sessions: SessionStore;
  links: LinkStore;
  secondFactors: SecondFactorStore;
  users: UserStore;
  directory: DirectoryStore;
  callList: CallListStore;
  activity: ActivityStore;
  dialing: DialingStore;
  retention: RetentionStore;
  auditChain: AuditChainStore;
  contacts: ContactStore;
  doNotCall: DoNotCallStore;
  rules: RuleStore;
  stops: StopStore;
  clock: ClockStore;
};

/** Everything that the domain needs from outside. */
export type Ports = {
  clock: Clock;
  randomness: Randomness;
  passwords: Passwords;
  throttle: ThrottleStore;
  stores: Stores;
  /** The company's OpenID Connect provider; null if none is configured. */
  identityProvider: IdentityProvider | null;
  /** Whether users can sign in with a password. If not, passwords can't be used, changed or handed out. */
  passwordSignIn: boolean;
  /** The host name that users know the server by; empty if it isn't configured. */
  serverName: string;
  secretBox: SecretBox;
  /** Whether everyone who signs in with a password needs a second factor. */
  requiresSecondFactor: boolean;
  maxActiveKeys: number;
  /** The command that users type to run `admin`, as messages show it. */
  adminCommand: string;
  onOutcome(state: OutcomeState): void;
  onStopped(reason: StopReason, calls: number): void;
  /** Queued calls to the added numbers can be blocked. */
  onDoNotCallAdded(): void;
  /** A revoke, deletion or stop may have left queued calls to cancel. Until then, claims cancel them instead of dialing them. */
  onCallsLeft(): void;
  /** Rules have changed or dialing was resumed, so a claim has to decide about held calls again. */
  onRulesChanged(): void;
};

export type Clock = {
  now(): Millis;
  /** Whether it also replaces the database's own clock, as a test's does. */
  standsForDatabase?: true;
};

export type Randomness = {
  /** Returns bytes from a cryptographic source. */
  bytes(size: number): Uint8Array;
  /** Returns a new ID. It sorts after all IDs from earlier milliseconds, so that tables grow at their end. */
  id(): string;
  /** An ID below `lowestId` was certainly generated before that time, and one of at least `highestId` at that time or later. */
  idsAround(at: Millis): { lowestId: string; highestId: string };
};

export type Passwords = {
  /** @returns an argon2id hash in PHC format */
  hash(password: string): Promise<string>;
  /**
   * Waits for a turn, then looks up the credentials and verifies the password. Takes as long without credentials, so that the time doesn't
   * reveal which email addresses exist.
   *
   * @throws Problem `too-many-requests` if the queue turns this attempt away, or it has waited too long
   */
  verify(find: () => Promise<Credentials | null>, password: string, origin: Attempt): Promise<Credentials | null>;
};

/** Stores the latest time from a clock that was right: see clock.ts. */
export type ClockStore = {
  /** `newestAt` is null until a core has recorded a time. `serverAt` is the time on the database server; null on SQLite. */
  read(): Promise<{ newestAt: Millis | null; serverAt: Millis | null }>;
  /** Does nothing if the recorded time is later. */
  advance(now: Millis): Promise<void>;
  set(now: Millis): Promise<void>;
};

/** Encrypts secrets that must not be readable in a copy of the database. */
export type SecretBox = {
  /** The beginning of every secret that's encrypted with the newest key. */
  newest: string;
  /** @param owner the ID of the user; the secret can't be decrypted for another user */
  seal(owner: string, secret: Uint8Array): string;
  /** @throws Error if none of the keys can decrypt the secret */
  open(owner: string, sealed: string): Uint8Array;
};

/**
 * With 'later', the keys are only marked, and `cancelCallsOfMarked` cancels the queued calls of all of them at once. With 'soon', it cancels
 * what can't be cancelled right away.
 */
export type CancelQueuedCalls = boolean | 'soon' | 'later';
export type RevokeOptions = { cancelQueuedCalls: CancelQueuedCalls; at: Millis };

/** An account, or a partner with all its accounts. */
export type Place = Named & { kind: TenancyKind };

/** @property reach the scope that the key has access to now */
export type ApiKeyDetails = { apiKey: ApiKey; createdIn: Place; reach: Place; lastUsedAddress: string | null };

export type ApiKeyStore = {
  /** @returns false if the creator already has `maxActive` active keys, even if several processes create some concurrently */
  create(key: ApiKey, digest: Digest, maxActive: number, event: AuditEvent): Promise<boolean>;
  countActive(creatorId: string, at: Millis): Promise<number>;
  /** Lists keys newest first, and by ID if they were created at the same time. `total` counts all visible keys. */
  list(visibility: KeyVisibility, limit: number): Promise<{ apiKeys: ApiKey[]; total: number }>;
  find(visibility: KeyVisibility, id: string): Promise<ApiKey | null>;
  /** Lists keys by descending ID, after the cursor, for a search through all keys. */
  page(visibility: KeyVisibility, cursor: string | null, limit: number): Promise<ApiKey[]>;
  /**
   * Returns keys in no particular order, once what was read is in effect on all nodes of the database, because a change may find that a key
   * is already revoked or limited.
   */
  findToChange(visibility: KeyVisibility, ids: readonly string[]): Promise<ApiKey[]>;
  findByDigest(visibility: KeyVisibility, digest: Digest): Promise<ApiKey | null>;
  details(visibility: KeyVisibility, id: string): Promise<ApiKeyDetails | null>;
  findRevoked(visibility: KeyVisibility, id: string): Promise<(Named & { creator: Named; revokedAt: Millis }) | null>;
  /** Counts by quarter-hour; `refused` because of the address. May be up to a minute behind. */
  usage(id: string, since: Millis): Promise<{ quarterAt: Millis; placed: number; cancelled: number; refused: number }[]>;
  /**
   * A new daily call limit starts to count at zero.
   *
   * @returns false, without changing anything, if the key was revoked, or the version of its limits isn't `before` anymore
   */
  limit(id: string, before: string | null, after: KeyLimits | null, event: AuditEvent): Promise<boolean>;
  placedOn(id: string, day: string): Promise<number>;
  /** Returns the addresses from which the key was used, newest first. May be up to a minute behind. */
  addresses(id: string, since: Millis, limit: number): Promise<{ address: string; usedAt: Millis }[]>;
  countQueuedCalls(id: string): Promise<number>;
  /** Revokes keys in one transaction. @param events one for each key @returns the IDs of those that weren't revoked yet */
  revoke(ids: readonly string[], options: RevokeOptions, events: readonly AuditEvent[]): Promise<string[]>;
  /** Cancels the calls that a revoke or deletion left for later, or couldn't cancel. @returns the number of calls */
  cancelCallsOfMarked(at: Millis, signal?: AbortSignal): Promise<number>;
  countByDaysLeft(now: Millis): Promise<Record<DaysLeft, number>>;
};

/** At most 7 or 30 days, more, or without expiry. */
export type DaysLeft = 'expired' | '7' | '30' | 'more' | 'never';

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
export type StoredCall = Omit<NewCall, 'variables'> & { campaignId: string; variables: Readonly<Record<string, string>>; placedAt: Millis };

export type CallReference = { contactId: string } | { requestId: string };

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

/** The key that a request used, and the client's address. The response is due by `deadline`, in milliseconds of `performance.now()`. */
export type KeyCaller = { key: ActiveKey; digest: Digest; address: string; deadline: number };
export type KeyedRequest = KeyCaller & { campaignId: string; at: Millis };

export type Refusal = 'unauthorized' | 'campaign-refused';

/** `placedToday` counts the calls of a key that has a daily call limit; null for other keys. */
export type Placement =
  /** A replayed request returns the call that was placed first. `heldUntil` is null if calling hours allow it now, or none apply. */
  | { kind: 'placed' | 'replayed'; contactId: string; placedAt: Millis; heldUntil: Millis | null; placedToday: number | null }
  /** The key has placed all its calls for today. */
  | { kind: 'too-many-calls'; placedToday: number }
  | { kind: 'request-id-conflict' }
  /** The contact data of the call with this request ID was erased, so the calls can't be compared. */
  | { kind: 'call-erased' }
  /** The call's `notAfter` has passed, and the request isn't a repeat. */
  | { kind: 'too-late' }
  | { kind: 'do-not-call' }
  | { kind: 'not-allowed'; objection: Objection }
  | { kind: Refusal };

export type Cancellation =
  | { kind: 'cancelled'; contactId: string; requestId: string; cancelledAt: Millis }
  | { kind: 'already-dialed' }
  | { kind: 'call-not-found' }
  | { kind: Refusal };

/**
 * The three key-authenticated operations. The database decides each one, in a statement that starts after the request arrived: the one that
 * inserts or cancels a call also checks the key, its creator and the campaign. Concurrent requests share a statement.
 *
 * @throws Problem, which means that nothing was placed or cancelled; ResultUnknown from `place` and `cancel`
 */
export type CallStore = {
  place(request: KeyedRequest, call: NewCall): Promise<Placement>;
  cancel(request: KeyedRequest, call: CallReference): Promise<Cancellation>;
  /** @returns null for a key that isn't active, or not accepted from that address */
  findActive(request: Omit<KeyedRequest, 'key' | 'campaignId'>): Promise<ActiveKey | null>;
  authorize(request: KeyedRequest): Promise<'authorized' | Refusal>;
};

/** @property cursor the item after which the page starts */
export type ListFilter = { search: string; cursor: string | null };

/** The start or end of a time range. For the IDs, see `Randomness.idsAround`. */
export type RangeEnd = { at: Millis; lowestId: string; highestId: string };
/** A time range of a day or more: includes `from`, excludes `before`; null means open. */
export type InstantRange = { from: RangeEnd | null; before: RangeEnd | null };

/** @property states empty for all states */
export type CallFilter = { placed: InstantRange; states: readonly CallState[]; apiKey: string | null; search: string };

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

/** Counts calls placed in the quarter-hour that begins at `quarterAt`. */
export type CallCount = { quarterAt: Millis; state: CallState; answeredBy: AnsweredBy | null; calls: number };

/** A stretch's last call (see `CallListStore.list`), after which the next one begins; null if no older calls are left. */
export type StretchEnd = { contactId: string; placedAt: Millis } | null;

export type CallListStore = {
  hasCampaign(access: CampaignAccess, campaignId: string): Promise<boolean>;
  /**
   * Lists calls newest first, after the cursor. Searches only a stretch of a few thousand calls, so that each statement is short, no matter
   * how many calls the campaign has.
   */
  list(
    scope: CallScope,
    filter: CallFilter,
    cursor: string | null,
    visibility: KeyVisibility,
    limit: number,
  ): Promise<{ calls: ListedCall[]; end: StretchEnd }>;
  /**
   * Lists the calls, newest first, whose request ID is exactly what's searched for, and those with that number that were handed off before
   * an instant. Indexes find both. None, if a number has thousands of them.
   */
  matchingExactly(scope: CallScope, filter: CallFilter, before: Millis, visibility: KeyVisibility, limit: number): Promise<ListedCall[]>;
  /** @returns null if not all calls in scope match, so that they have to be counted stretch by stretch */
  countUpTo(scope: CallScope, filter: CallFilter, max: number): Promise<number | null>;
  /** Counts the matching calls in one stretch, as in `list`, by the quarter-hour when they were placed. */
  count(scope: CallScope, filter: CallFilter, cursor: string | null): Promise<{ counts: CountOfCampaign[]; end: StretchEnd }>;
  /** @param id of an active or a revoked key */
  seesKey(visibility: KeyVisibility, id: string): Promise<boolean>;
  find(campaignId: string, contactId: string, visibility: KeyVisibility): Promise<CallDetails | null>;
  /**
   * Adds to calls that contact limits hold when their numbers were last called.
   *
   * @param ofPartner whether also by the partner's other accounts
   */
  withLastContacts(calls: readonly ListedCall[], ofPartner: boolean, now: Millis): Promise<ListedCall[]>;
  summary(campaignId: string, since: Millis): Promise<CallCount[]>;
  /** @param days their first instants, oldest first @param before the end of the last day; null to count later calls on that day */
  summaryOfAll(campaignIds: readonly string[], days: readonly Millis[], before: Millis | null): Promise<CountOfCampaign[]>;
  /** Adds up the stored counts of ended calls, because on PostgreSQL each call adds a row. Housekeeping runs this. */
  compactCounts(): Promise<void>;
};

export type CallScope = { kind: 'campaigns'; ids: readonly string[] } | CampaignAccess;

export type CountOfCampaign = CallCount & { campaignId: string };

/** How many days the contact data of ended calls, and audit events, are kept; null for no limit. */
export type RetentionDays = Readonly<{ contacts: number | null; auditEvents: number | null }>;

export type RetentionStore = {
  /** Null if no core has recorded any. */
  recordedDays(): Promise<RetentionDays | null>;
  /** Records the settings. @returns the previous ones if they were different */
  recordDays(days: RetentionDays): Promise<RetentionDays | null>;
  /** Counts the calls that ended before this time and still have contact data, and returns when the oldest call with contact data ended. */
  countErasable(endedBefore: Millis): Promise<{ erasable: number; oldestEndedAt: Millis | null }>;
  /** Erases phone number, name, time zone, variables and the provider's detail. @param onErased called after each small batch */
  erase(endedBefore: Millis, signal?: AbortSignal, onErased?: (calls: number) => void): Promise<number>;
  /** Deletes counts that charts no longer show, in small batches. @returns the number of counts */
  forgetCounts(before: Millis, signal?: AbortSignal): Promise<number>;
};

type CallKey = { campaignId: string; contactId: string };

/** Everything that's stored about a call to a person. */
export type ContactCall = StoredCall &
  Pick<ListedCall, 'state' | 'dialedAt' | 'endedAt' | 'detail'> & {
    campaignName: string;
    accountName: string;
    durationSeconds: number | null;
  };

export type ContactStore = {
  /** Returns the number's calls, oldest first. Reads all calls, in small batches. */
  findCalls(phone: string): Promise<ContactCall[]>;
  /** Cancels queued calls, and erases those that have ended. @param toEvent gets the number of calls that a transaction has erased */
  erase(calls: readonly CallKey[], at: Millis, toEvent: (erased: number) => AuditEvent): Promise<{ cancelled: number; erased: number }>;
};

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

/** The provider isn't accepting calls. */
export type DialerTrouble = {
  /** When the first of these hand-offs in a row failed. */
  since: Millis;
  /** Why the last one did. Doesn't quote the provider, because its message may contain details of a call. */
  reason: string;
};

/** `detail` may quote the provider; `reason` doesn't. */
export type HandoffResult =
  /** The provider reports the outcome, or the core asks for it at `outcomeAt`. */
  | { kind: 'taken'; outcomeAt?: Millis }
  /** The provider refused the call permanently. */
  | { kind: 'rejected'; detail: string; reason: string }
  /** The provider definitely doesn't have the call. `retryAfter` is in seconds. */
  | { kind: 'not-taken'; detail: string; reason: string; retryAfter?: number }
  /** The request was sent, so the provider may have the call. */
  | { kind: 'answer-lost'; detail: string; reason: string };

/** How a call ended, as the provider or the simulation says. */
export type Conclusion = {
  state: OutcomeState;
  detail: string | null;
  endedAt: Millis;
  durationSeconds: number | null;
  answeredBy?: AnsweredBy | undefined;
};

/** The service that makes phones ring. */
export type Provider = {
  name: 'webhook' | 'simulated';
  /** Whether several hand-offs with the same ID make only one call. */
  deduplicates: boolean;
  /** Begins only while `mayBegin`, and responds within `dialingLimits.answer` of the claim. */
  handOff(call: ClaimedCall): Promise<HandoffResult>;
  /** Returns the outcome of a taken call when `outcomeAt` has come; null if the provider should have reported it by now. */
  conclude(call: ClaimedCall): Conclusion | null;
};

/** Moves calls through their states: see call-states.ts. */
export type DialingStore = {
  /**
   * Claims due calls, oldest first and evenly across all accounts that have some, each in only one process at a time. Lapses those that
   * weren't dialed in time, and skips what's stopped, and what its pace or contact limits don't allow now.
   *
   * @param serverPace the pace of all scopes together; every core must pass the same
   * @param lateness in ms: how much later than their moment this process's calls have left
   */
  claim(
    limit: number,
    provider: Provider['name'],
    now: Millis,
    leaseUntil: Millis,
    serverPace?: Pace | null,
    lateness?: number,
  ): Promise<ClaimedCall[]>;
  /** Returns in how many ms to claim the next call of a scope with a pace, if that's later than now. */
  nextInPace(): Promise<number | null>;
  /** Returns when a number was called, latest first. */
  contactTimes(limits: ScopeContactLimits, phone: string, now: Millis): Promise<readonly Millis[]>;
  /**
   * @param isAttempt whether the call was handed off since this claim; true by default
   * @returns false, without changing anything, if another process has claimed the call since this claim, or the call has ended
   */
  settle(call: ClaimedCall, settlement: Settlement, isAttempt?: boolean): Promise<boolean>;
  /**
   * Ends a call that's being dialed, or `unknown` and not erased. An opt-out adds the number of any call that was handed off to the
   * do-not-call list of its account or partner, in the same transaction.
   *
   * @param conclusion null only adds the number
   * @param toOptOut for an opt-out: returns the event, whose subject is the new entry of the list
   * @returns null if the call wasn't handed off, or `erased` if an opt-out's number is no longer known
   * @throws Problem `unavailable` like {@link DoNotCallStore.addNumbers}
   */
  recordOutcome(
    contactId: string,
    conclusion: Conclusion | null,
    now: Millis,
    toOptOut?: (owner: OwningScope) => AuditEvent,
  ): Promise<'recorded' | 'not-needed' | 'erased' | null>;
  /** Lapses calls that weren't dialed by their `notAfter`, in small batches. @returns the number of calls */
  lapse(now: Millis, signal?: AbortSignal): Promise<number>;
  /** Ends calls that no dialer has claimed for `dialingLimits.life` after they were due, in small batches. @returns the number of calls */
  endForgotten(now: Millis, signal?: AbortSignal): Promise<number>;
  /**
   * Makes calls due now if their `due_at` was set by a clock that was ahead, instead of waiting until the clock catches up. Also deletes
   * reports of trouble that were recorded with such a clock.
   *
   * @param hasStepped whether the clock was just set back, so that the next claim checks all calls held by calling hours again
   * @returns the number of calls
   */
  recoverFromClockStep(now: Millis, hasStepped: boolean, signal?: AbortSignal): Promise<number>;
  /** @param core the name of the core's process @param trouble null clears the record */
  noteTrouble(core: string, trouble: DialerTrouble | null, now: Millis): Promise<void>;
  /** Returns the oldest trouble. */
  findTrouble(notedSince: Millis): Promise<DialerTrouble | null>;
  /** Counts calls that are due or held. With many thousands of held calls, it estimates what they wait for. */
  queue(now: Millis): Promise<{ waiting: ReadonlyMap<WaitingFor, number>; oldestDueAt: Millis | null }>;
};

/** What rules belong to. `owner.accountId` is null only for a partner. */
export type RuleScope = Named & { kind: ProtectionScope; owner: OwningScope };

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

/** The rules that a scope itself has. Null means that it inherits them. */
export type ScopeRules = {
  hours: readonly HoursRule[] | null;
  countries: readonly string[] | null;
  kinds: readonly RestrictedKind[] | null;
  pace: Pace | null;
  contactLimits: ContactLimits | null;
};

/** Throws if a scope's rules aren't those that a change is based on. */
export type CheckRules = (before: ScopeRules) => void;

/** The do-not-call lists of an account, of a partner and all its accounts, or of everyone. */
export type ProtectionAccess = Exclude<CampaignAccess, { kind: 'nothing' }>;

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

/** A number from an import, with the details from its line. */
export type ImportedNumber = Pick<DoNotCallEntry, 'phone'> &
  Partial<Pick<DoNotCallEntry, 'reason' | 'note' | 'source' | 'createdAt' | 'endsAt'>>;

/** Numbers for one list. The other fields apply to each number that doesn't have its own value. */
export type NewDoNotCall = Omit<DoNotCallEntry, 'id' | 'phone' | 'scope'> & {
  owner: OwningScope;
  numbers: readonly ({ id: string } & ImportedNumber)[];
};

export type ImportedNumbers = Omit<NewDoNotCall, 'numbers'>;

/**
 * The statements that place and claim calls check these lists themselves, and so they do with the rules. A change returns only once every
 * claim that might not have seen it has ended, so no call violates an acknowledged change.
 */
export type DoNotCallStore = {
  /**
   * A number that's already on the list keeps its date, and gets the new end date if that's later.
   *
   * @returns the numbers that were already there, and how many calls to all of them are being dialed
   * @throws Problem `unavailable` if the numbers were added but a claim that might not have seen them is still running
   */
  addNumbers(added: NewDoNotCall, now: Millis, event: AuditEvent | null): Promise<{ known: string[]; beingDialed: number }>;
  /**
   * Adds any number of numbers in short transactions, of which the first records the event.
   *
   * @returns how many were new
   * @throws Problem `unavailable` like addNumbers
   */
  importNumbers(
    entry: ImportedNumbers,
    numbers: AsyncIterable<{ id: string } & ImportedNumber>,
    now: Millis,
    event: AuditEvent,
  ): Promise<number>;
  /** @returns false if the entry doesn't exist */
  lift(id: string, event: AuditEvent): Promise<boolean>;
  /** Returns a number's entries on all do-not-call lists, including those that have ended. */
  entriesFor(phone: string): Promise<DoNotCallEntry[]>;
  /** Deletes a number's do-not-call entries, and records the event if there were any. @returns the number of deleted entries */
  forget(phone: string, event: AuditEvent): Promise<number>;
  findEntry(access: ProtectionAccess, id: string): Promise<DoNotCallEntry | null>;
  /** Lists newest first. @param cursor an ID */
  listNumbers(access: ProtectionAccess, cursor: string | null, limit: number): Promise<DoNotCallEntry[]>;
  /** Lists by number. */
  searchNumbers(access: ProtectionAccess, prefix: string, after: PhonePosition | null, limit: number): Promise<DoNotCallEntry[]>;
  countNumbers(access: ProtectionAccess, prefix: string, max: number): Promise<number>;
  findBlocking(owner: { accountId: string; partnerId: string }, phone: string, now: Millis): Promise<DoNotCallEntry[]>;
  optOutScope(accountId: string): Promise<OptOutScope>;
  setOptOutScope(accountId: string, scope: OptOutScope, event: AuditEvent): Promise<void>;
  /** Blocks the queued calls to numbers that were added since the last time, in small batches. @returns the number of calls */
  blockDoNotCall(now: Millis, signal?: AbortSignal): Promise<number>;
  /** Deletes entries that have ended, in small batches. @returns the number of entries */
  deleteEnded(now: Millis, signal?: AbortSignal): Promise<number>;
};

export type RuleStore = {
  findScope(access: ProtectionAccess, kind: ProtectionScope, id: string): Promise<RuleScope | null>;
  findRules(scopeId: string): Promise<ScopeRules>;
  /** Null if the campaign doesn't exist. */
  campaignRules(campaignId: string): Promise<CampaignRules | null>;
  /** Replaces the given rules, unless the check throws. They can't change between the two. */
  setRules(scope: RuleScope, change: Partial<ScopeRules>, event: AuditEvent, check: CheckRules): Promise<void>;
  /** Makes held calls due in scopes whose rules have changed or where dialing was resumed, in small batches. @returns the number of calls */
  makeHeldDue(now: Millis, signal: AbortSignal): Promise<number>;
};

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

/** The claim reads stops itself, after it has locked the calls. */
export type StopStore = {
  /**
   * Stops dialing for a scope, unless it's already stopped, and waits until every hand-off in it that was under way has ended.
   *
   * @param cancelling as for {@link RevokeOptions}
   * @param rest passes the time between two looks at the hand-offs
   * @returns the stop that's in force; null if the one that was there has been ended in the meantime
   * @throws Problem `unavailable` if the scope is stopped, but a claim that might not have seen it, or cancelling, isn't done
   */
  stop(
    stop: DialingStop,
    cancelling: boolean | 'soon',
    event: AuditEvent,
    rest?: (ms: number) => Promise<void>,
  ): Promise<{ stop: DialingStop | null; isNew: boolean }>;
  /** Counts the calls of a stop's scope. `withProvider` are those that a provider has or may have. */
  count(stop: DialingStop): Promise<{ queuedCalls: number; withProvider: number }>;
  /** Lists the stops that apply to something in the viewer's reach, newest first. */
  list(access: ProtectionAccess): Promise<DialingStop[]>;
  /**
   * Ends a stop once the calls that it has to cancel are cancelled.
   *
   * @returns false if it has already ended
   * @throws Problem `unavailable` if calls are still being cancelled
   */
  resume(stop: DialingStop, event: AuditEvent, cancelling: true | 'soon'): Promise<boolean>;
  /** Cancels the queued calls that a stop left for later. @returns the number of calls */
  cancelCallsOfStopped(signal?: AbortSignal): Promise<number>;
};

export const waitingReasons = ['dialer', 'calling-hours', 'stop', 'pace', 'contact-limit'] as const;
export type WaitingFor = (typeof waitingReasons)[number];

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

/** A user to change. `signInVersion` is the one that the user must still have; if it's missing, any will do. */
export type TargetUser = Pick<User, 'id'> & { signInVersion?: SignInVersion };

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

/** @property awaySince selects users who haven't signed in since then; null for all */
type UserFilter = { search: string; awaySince: Millis | null };

export type UserStore = {
  count(): Promise<number>;
  /** Lists users whose name or email address contains the text, oldest first. */
  list(visibility: UserVisibility, filter: UserFilter, after: TimePosition | null, limit: number): Promise<ListedUser[]>;
  /** Waits, like {@link ApiKeyStore.findToChange}, until what was read is in effect everywhere. */
  find(visibility: UserVisibility, id: string): Promise<ListedUser | null>;
  deletionImpact(userId: string, after: TimePosition | null, limit: number): Promise<DeletionImpact>;
  findByEmail(email: string): Promise<Credentials | null>;
  /** @throws Problem `conflict` if the email address is taken */
  create(user: NewUser, event: AuditEvent): Promise<void>;
  /** Ends the user's sessions except the one that the change is made in. @returns false if the user isn't as expected */
  setPassword(user: TargetUser, password: NewPassword, event: AuditEvent): Promise<boolean>;
  /**
   * Ends the user's sessions, unless only the name changes. The access of the user's keys changes immediately; the lists that show more than
   * a thousand of them change in batches.
   *
   * @returns false, without changing anything, if the user isn't as in `before`
   */
  change(userId: string, before: UserChange, changed: UserChange, event: AuditEvent): Promise<boolean>;
  /**
   * Disables the user and their keys, and ends the user's sessions; null re-enables them.
   *
   * @returns the number of sessions, or null if nothing changed or the user isn't as expected
   */
  setDisabled(user: TargetUser, disabledAt: Millis | null, event: AuditEvent): Promise<number | null>;
  /**
   * Deletes the user and their keys and sessions, with immediate effect. The rows of more than a thousand keys are deleted later, in batches.
   *
   * @returns the numbers of keys and sessions, or null if the user isn't as expected
   */
  delete(
    user: TargetUser,
    options: RevokeOptions,
    event: AuditEvent,
    toKeyEvent: ToKeyEvent,
  ): Promise<{ apiKeys: number; sessions: number } | null>;
  /** Finishes deleting users, and moving users' keys to the lists of their new partners, in small batches. @returns the number of keys */
  finishChanges(toKeyEvent: ToKeyEvent, signal: AbortSignal): Promise<number>;
};

export type Deletion = Pick<AuditEvent, 'actor' | 'address' | 'subject' | 'detail'>;
export type EndedKey = Pick<ApiKey, 'id' | 'name' | 'eventScope'>;
/** Builds the event of a key that ends with its user. */
export type ToKeyEvent = (deletion: Deletion, key: EndedKey) => AuditEvent;

export type Campaign = Named & { account: Named };

/** A partner, account or campaign as its managers see it, with its parent. */
export type ManagedPartner = Named & { accounts: number };
export type ManagedAccount = Named & { partner: Named; campaigns: number };
export type ManagedCampaign = Named & { account: Named; partner: Named; settings: Record<string, string> };
export type Managed = { partner: ManagedPartner; account: ManagedAccount; campaign: ManagedCampaign };

/** @property count null if it isn't counted, because there may be millions */
export type Belonging = { noun: string; count: number | null };

export type DirectoryKind = keyof Managed;
export type ManagedAccess = { partner: DirectoryAccess; account: CampaignAccess; campaign: CampaignAccess };

export type DirectoryStore = {
  /** Creates all three or none. @returns false if a partner already exists, even if several processes try at the same time */
  setUp(
    partner: Named,
    account: Account,
    campaign: Named & { accountId: string },
    events: readonly [AuditEvent, ...AuditEvent[]],
  ): Promise<boolean>;
  /** @param ownerId the account's partner, or the campaign's account */
  create(kind: DirectoryKind, entity: Named, ownerId: string | null, event: AuditEvent): Promise<void>;
  /** @returns false if it doesn't exist */
  change(kind: DirectoryKind, entity: Named & Partial<Pick<ManagedCampaign, 'settings'>>, event: AuditEvent): Promise<boolean>;
  /** @returns what belongs to it, if it wasn't deleted because of that; null if it doesn't exist */
  delete(kind: DirectoryKind, id: string, event: AuditEvent): Promise<Belonging[] | null>;
  /**
   * Shows campaigns again that were being deleted when this was last called, and still are: the process that was deleting them has ended.
   *
   * @returns how many
   */
  restoreCampaigns(): Promise<number>;
  /** Lists in the order of the IDs. @param ownerId null for those of all, and then the names of the campaigns' accounts are searched, too */
  list<Kind extends DirectoryKind>(
    kind: Kind,
    access: ManagedAccess[Kind],
    ownerId: string | null,
    filter: ListFilter,
    limit: number,
  ): Promise<Managed[Kind][]>;
  find<Kind extends DirectoryKind>(kind: Kind, access: ManagedAccess[Kind], id: string): Promise<Managed[Kind] | null>;
  /** Lists all by name, for the operator. */
  all(kind: DirectoryKind): Promise<(Named & { externalId: string | null; owner: Named | null })[]>;
  findTenancy(choice: Pick<Tenancy, 'kind' | 'id'>): Promise<Tenancy | null>;
  /** Lists the best matches first. */
  searchTenancies(text: string, limit: number): Promise<Tenancy[]>;
};

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
type ImportChange = {
  entity: ImportedEntity;
  event: AuditEvent | null;
  unlinking: AuditEvent | null;
  disabling: AuditEvent | null;
};
/** What a changed user has lost. */
export type EndedSignIn = { sessions: number; unlinked: boolean };

export type ImportStore = {
  find(kind: ImportKind, externalIds: readonly string[]): Promise<Map<string, ImportedEntity>>;
  /** Returns the users' external IDs by email address; null for a user who wasn't imported. */
  findEmails(emails: readonly string[]): Promise<Map<string, string | null>>;
  /**
   * Writes an entire step or nothing. A user who gets another email address loses the link to an identity.
   *
   * @returns what changed users have lost, by their IDs
   * @throws Problem `conflict` if the same entities have changed since they were read
   */
  write(kind: ImportKind, step: { added: readonly ImportAddition[]; changed: readonly ImportChange[] }): Promise<Map<string, EndedSignIn>>;
};

/** The random values of one sign-in with the identity provider: 32 bytes each, in base64url. */
export type FlowSecrets = { state: string; nonce: string; verifier: string };

export type Identity = Subject & { email: string | null; isEmailVerified: boolean };

/** An OpenID Connect provider. Nothing that it sends is stored, except issuer and subject. */
export type IdentityProvider = {
  issuer: string;
  name: string;
  /** Returns the page where the user signs in. @throws IdentityProviderError */
  authorizationUrl(flow: FlowSecrets): Promise<string>;
  /** Checks, without a request, that a callback's query contains a code for this sign-in. @throws IdentityProviderError */
  checkCallback(query: string, flow: FlowSecrets): Promise<void>;
  /** Exchanges the code in a callback's query for the identity. @throws IdentityProviderError */
  identify(query: string, flow: FlowSecrets): Promise<Identity>;
  /** Returns the page that ends the session there; null if there is none, or if the identity provider hasn't responded yet. */
  signOutUrl(): string | null;
};

/**
 * An attempt to enter a password or code. In the queue for passwords, networks take turns. Vouched attempts have a queue of their own, in
 * which users take turns.
 *
 * @property vouched the session or known device of the same user that the attempt comes from. Wrong passwords from there count only against
 * it, so that no one else can lock the user out of it (OWASP Authentication Cheat Sheet, device cookies)
 */
export type Attempt = { email: string; address: string; vouched: string | null };

/** Allows at most `max` attempts within `window` ms of the first one. */
export type ThrottleCounter = { key: string; max: number; window: number };

export type ThrottleStore = {
  /** @returns when the last of the full counters ends, at most one window from now */
  blockedUntil(counters: readonly ThrottleCounter[], now: Millis): Promise<Millis | null>;
  /** Increments all counters or, if one is full, none of them. @returns whether it counted */
  take(counters: readonly ThrottleCounter[], now: Millis): Promise<boolean>;
  giveBack(key: string): Promise<void>;
  /** Deletes a counter whose window isn't over. @returns whether there was one */
  reset(key: string, now: Millis): Promise<boolean>;
  /** Deletes counters whose window is over. If there are still too many, also deletes those with the fewest attempts. */
  sweep(now: Millis): Promise<void>;
};

export type SessionBounds = { startedAfter: Millis; seenAfter: Millis; before: Millis; now: Millis };

export type NewSession = { id: Digest; userId: string; at: Millis; halfOpenUntil: Millis | null };

/** What's needed to use up a correct code: the time step of one from the app, or the digest of a recovery code. */
export type CheckedCode = { kind: 'step'; step: number } | { kind: 'recovery'; digest: Digest };

export type SessionStore = {
  /**
   * @param event null for a half-open session, because the user hasn't signed in yet
   * @returns false if the way in which the user signs in has changed, or the user is disabled
   */
  start(session: NewSession, version: SignInVersion, event: AuditEvent | null): Promise<boolean>;
  /** Replaces a half-open session, and uses up the code. @returns false if the half-open session has ended or the code was already used */
  finish(halfOpen: Digest, session: NewSession, code: CheckedCode, events: readonly AuditEvent[]): Promise<boolean>;
  /** @returns false like `start`, and if the user isn't linked to this identity */
  startLinked(session: NewSession, version: SignInVersion, subject: Subject, event: AuditEvent): Promise<boolean>;
  find(id: Digest): Promise<Session | null>;
  /** Updates only an existing session, because a slow request must not bring back a deleted one. */
  touch(id: Digest, at: Millis): Promise<void>;
  /** @returns false if the session has ended */
  selectTenancy(id: Digest, tenancy: Tenancy | null): Promise<boolean>;
  end(id: Digest, event: AuditEvent): Promise<boolean>;
  /** Ends those of the event's subject. @returns their number */
  endAll(event: AuditEvent): Promise<number>;
  sweep(bounds: SessionBounds): Promise<void>;
  endDisallowed(allowed: { password: boolean; issuer: string | null }): Promise<void>;
};

type Link = Subject & { linkedAt: Millis };

/** A code that the app exchanges for its own session. Only its digest is stored. */
export type SignInCode = Subject & { digest: Digest; userId: string; signInVersion: SignInVersion; challenge: string; expiresAt: Millis };

export type LinkStore = {
  find(subject: Subject): Promise<{ user: User; disabledAt: Millis | null; signInVersion: SignInVersion } | null>;
  /**
   * Replaces a link to another identity provider. If the user's password was handed out, also ends it and removes the second factor, because
   * they may be someone else's.
   *
   * @param keepsPassword whether the person has proved that they chose the password
   * @returns false like `SessionStore.start`, and if the user is linked to another identity there, or this identity to another user
   */
  create(user: TargetUser, subject: Subject, keepsPassword: boolean, event: AuditEvent): Promise<boolean>;
  /** @returns false if the user isn't linked, or isn't as expected */
  delete(user: TargetUser, event: AuditEvent): Promise<boolean>;
  /** Lists all by email address, for the operator. */
  list(): Promise<(Link & { email: string })[]>;
  createCode(code: SignInCode): Promise<void>;
  /** Deletes the code, so that it works only once. */
  takeCode(digest: Digest): Promise<SignInCode | null>;
  sweepCodes(before: Millis): Promise<void>;
};

export type SecondFactorStore = {
  /** Its secret is encrypted. */
  find(userId: string): Promise<{ secret: string; isConfirmed: boolean } | null>;
  /**
   * Stores an unconfirmed secret, and replaces an earlier one.
   * @param session the session that must still be open
   * @returns false if the user already has a second factor, or has changed the password since
   * @throws Problem `unauthorized` if the session has ended
   */
  enroll(user: TargetUser, secret: string, session?: Digest): Promise<boolean>;
  /** @returns false if the unconfirmed secret is a different one */
  confirm(userId: string, confirmed: ConfirmedFactor, event: AuditEvent): Promise<boolean>;
  /** Uses up a code, as do the two changes below. @returns false, without changing anything, if it was already used or never existed */
  use(userId: string, code: CheckedCode, events: readonly AuditEvent[]): Promise<boolean>;
  remove(userId: string, code: CheckedCode, event: AuditEvent): Promise<boolean>;
  renew(userId: string, code: CheckedCode, recoveryDigests: readonly Digest[], event: AuditEvent): Promise<boolean>;
  countRecoveryCodes(userId: string): Promise<number>;
  /** Ends the user's sessions, too. @returns their number; null if there's no second factor, or the user isn't as expected */
  reset(user: TargetUser, event: AuditEvent): Promise<number | null>;
  /** Lists encrypted secrets that don't start with `prefix`, by user ID, after the ID `after`. */
  listSealedOtherwise(prefix: string, after: string, limit: number): Promise<{ userId: string; secret: string }[]>;
  /** Does nothing if the secret has changed. */
  reseal(userId: string, from: string, to: string): Promise<void>;
};

type ConfirmedFactor = { secret: string; step: number; recoveryDigests: readonly Digest[]; at: Millis };

/** `fields` contains all of an event's data, in a fixed order. */
export type ChainedEvent = { seq: number; hash: string; at: Millis; fields: readonly (string | number | null)[] };

/** Identifies a state of the chain: no event up to it can change without changing the hash. */
export type Seal = { seq: number; hash: string };

/** The chain of audit events: see audit-chain.ts. */
export type AuditChainStore = {
  /** Chains the events that aren't chained yet, oldest first, in small batches. @returns the number of events */
  extend(signal?: AbortSignal): Promise<number>;
  /** Returns the chain's newest event, the newest pruned one, and the highest number of any event; null if none has one. */
  state(): Promise<Seal & { prunedSeq: number; prunedHash: string; unchained: number; lastSeq: number | null }>;
  /** Returns the events numbered after `after`, up to `last`. */
  read(after: number, last: number, limit: number): Promise<ChainedEvent[]>;
  oldestAt(): Promise<number | null>;
  /** Deletes events up to and including `last`, in small batches. @returns the number of events */
  prune(last: number, signal?: AbortSignal): Promise<number>;
};

export type ActivityFilter = {
  at: InstantRange;
  /** Null for all actors; its `id` is null for the operator. */
  actor: { id: string | null } | null;
  action: string | null;
  /** An ID. */
  subject: string | null;
};

/** The action can be any text, because an older or newer release may have written it. */
export type ListedEvent = Omit<AuditEvent, 'owningScope' | 'action' | 'actor' | 'session' | 'budget'> & {
  action: string;
  actor: Person | null;
};

export type ActivityStore = {
  record(event: AuditEvent): Promise<void>;
  /** Lists newest first. */
  list(visibility: ActivityVisibility, filter: ActivityFilter, cursor: string | null, limit: number): Promise<ListedEvent[]>;
  count(visibility: ActivityVisibility, filter: ActivityFilter, max: number): Promise<number>;
  /** Returns the users who acted, with their current names. */
  facets(visibility: ActivityVisibility): Promise<{ actors: (Person | null)[]; actions: string[] }>;
  /** Lists events newest first for a viewer who can see the key: visible ones, the viewer's own, and refused requests. */
  listOfApiKey(viewer: { userId: string; visibility: ActivityVisibility }, id: string, limit: number): Promise<ListedEvent[]>;
  /** Returns the event of a key's end, which everyone who could see the key may know; null if it was pruned. */
  endOfApiKey(id: string): Promise<ListedEvent | null>;
};
