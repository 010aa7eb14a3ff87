import type { DateTime } from 'luxon';
import type { OutcomeState } from '#contract/calls/dialer.ts';
import type { Named } from '#contract/console.ts';
import type { Conclusion, Settlement } from './calls/call-states.ts';
import type { ActivityVisibility, CampaignAccess, DirectoryAccess, KeyVisibility, UserVisibility } from './directory/scope.ts';
import type {
  Account,
  ActivityFilter,
  ApiKey,
  ApiKeyDetails,
  AuditEvent,
  CallCount,
  CallDetails,
  Caller,
  CallFilter,
  CallKey,
  CallReference,
  CallStretch,
  Campaign,
  ChainedEvent,
  ClaimedCall,
  ContactCall,
  Credentials,
  DeletionImpact,
  DialerTrouble,
  Digest,
  ExternalNamed,
  ImportAddition,
  ImportChange,
  ImportedThing,
  ImportKind,
  InstantRange,
  KeyUsage,
  ListedEvent,
  ListedUser,
  ListFilter,
  ManagedAccount,
  ManagedCampaign,
  ManagedPartner,
  NewCall,
  NewPassword,
  NewUser,
  RetentionDays,
  Seal,
  Session,
  StretchEnd,
  Tenancy,
  UserChange,
} from './model.ts';
import type { TimePosition } from './paging.ts';

export type Clock = {
  /** The current instant, in UTC. */
  now(): DateTime<true>;
  /** The same in epoch milliseconds, without the cost of a DateTime: key-authenticated requests ask for it by the thousand. */
  millis(): number;
};

export type Randomness = {
  /** Bytes from a cryptographic source. */
  bytes(size: number): Uint8Array;
  /** A new identifier. It sorts after those of earlier milliseconds, so that tables grow at their end. */
  id(): string;
  /** A text that sorts before all identifiers made from this instant on, and after all made before; null if it's not known. */
  firstIdAt(millis: number): string | null;
};

export type Passwords = {
  /** @returns an argon2id hash in PHC form */
  hash(password: string): Promise<string>;
  /**
   * Takes a place in the queue; looks the credentials up and verifies the password when its turn comes. Takes equally long if there are no
   * credentials, so that the time does not tell which e-mail addresses exist.
   *
   * @returns the credentials, or null if the password is wrong
   * @throws Problem `too-many-requests` if the queue is full, and others need the place more
   */
  verify(find: () => Promise<Credentials | null>, password: string, origin: PasswordOrigin): Promise<Credentials | null>;
};

/** Who shares a turn in the queue: a network or, if it vouches for the attempt, a session or known device. */
export type PasswordOrigin = { address: string; vouched: string | null };

/** At most `most` attempts in a window, in ms from the first one. */
export type ThrottleCounter = { key: string; most: number; window: number };

/** Counts attempts, over all processes. Instants are epoch milliseconds. */
export type ThrottleStore = {
  /** @returns when the last full counter among these opens again, at most a window ahead; null if none is full */
  blockedUntil(counters: readonly ThrottleCounter[], now: number): Promise<number | null>;
  /** Counts in all of them or, if one is full, in none. @returns whether it counted */
  take(counters: readonly ThrottleCounter[], now: number): Promise<boolean>;
  giveBack(key: string): Promise<void>;
  reset(key: string): Promise<void>;
  /** Deletes counters whose window is over and, if there are too many, those with the fewest attempts. */
  sweep(now: number): Promise<void>;
};

export type RevokeOptions = { cancelQueuedCalls: boolean; at: DateTime };

export type ApiKeyStore = {
  /**
   * @param mostActive keys that the creator may have which have not expired
   * @returns false, and creates nothing, if they have so many; exact over all processes
   */
  create(key: ApiKey, digest: Digest, mostActive: number, event: AuditEvent): Promise<boolean>;
  /** How many keys of a user have not expired. */
  countActive(creatorId: string, at: DateTime): Promise<number>;
  /** The newest first, ties broken by id; only those after this one in that order, if there is one. */
  list(visibility: KeyVisibility, limit: number, olderThan: ApiKey | null): Promise<{ apiKeys: ApiKey[]; total: number }>;
  find(visibility: KeyVisibility, id: string): Promise<ApiKey | null>;
  /** The newest ids first, from after the cursor: for a look through all of them. */
  page(visibility: KeyVisibility, cursor: string | null, limit: number): Promise<ApiKey[]>;
  /** The visible ones among these, in no order. */
  findAll(visibility: KeyVisibility, ids: readonly string[]): Promise<ApiKey[]>;
  findByDigest(visibility: KeyVisibility, digest: Digest): Promise<ApiKey | null>;
  details(visibility: KeyVisibility, id: string): Promise<ApiKeyDetails | null>;
  /** What the key did since an instant in epoch milliseconds, at most a minute behind. */
  usage(id: string, since: number): Promise<KeyUsage[]>;
  countQueuedCalls(id: string): Promise<number>;
  /**
   * Revokes keys in one transaction, and passes over those that are already revoked.
   *
   * @param events for each key the one that its revocation leaves
   * @returns the ids of the keys that it revoked
   */
  revoke(ids: readonly string[], options: RevokeOptions, events: readonly AuditEvent[]): Promise<string[]>;
  /** Cancels the calls that a revoke or a deletion should have cancelled and did not, such as when its process died. @returns how many */
  finishCancelling(at: DateTime, signal: AbortSignal): Promise<number>;
  /** Sums the kept counts of keys up, which grow by a row for each change on PostgreSQL. Housekeeping runs it. */
  compactCounts(): Promise<void>;
  /** Keys by what is left of them: ended, at most 7 or 30 days, longer, for ever. */
  countByDaysLeft(now: DateTime): Promise<Record<DaysLeft, number>>;
};

export type DaysLeft = 'expired' | '7' | '30' | 'more' | 'never';

/** A key-authenticated request. `at` is in epoch milliseconds. */
export type KeyedRequest = Caller & { campaignId: string; at: number };

export type Refusal = 'unauthorized' | 'campaign-refused';

/** Its end in epoch milliseconds, which never changes after creation; null without one. */
export type ActiveKey = { expiresAt: number | null };

export type Placement =
  | { kind: 'placed' }
  | { kind: 'replayed'; contactId: string; placedAt: number }
  | { kind: 'request-id-conflict' }
  /** Its `notAfter` has passed, and it repeats no call. */
  | { kind: 'too-late' }
  | { kind: Refusal };

export type Cancellation =
  | { kind: 'cancelled'; contactId: string; requestId: string; cancelledAt: number }
  | { kind: 'already-dialed' }
  | { kind: 'call-not-found' }
  | { kind: Refusal };

/**
 * The three key-authenticated operations. The database decides each one, in a statement that starts after the request arrived: the statement
 * that inserts or cancels a call itself checks the key, its creator and the campaign. Concurrent requests share a statement.
 *
 * A Problem says that nothing was placed or cancelled. If that is not known, `place` and `cancel` throw ResultUnknown.
 */
export type CallStore = {
  place(request: KeyedRequest, call: NewCall): Promise<Placement>;
  cancel(request: KeyedRequest, call: CallReference): Promise<Cancellation>;
  /** @param key.address where the request comes from. @returns null for a key that is not active */
  findActive(key: Omit<KeyedRequest, 'campaignId'> & { address: string }): Promise<ActiveKey | null>;
  authorize(request: KeyedRequest): Promise<'authorized' | Refusal>;
};

export type CallListStore = {
  hasCampaign(access: CampaignAccess, campaignId: string): Promise<boolean>;
  /**
   * The newest first, from after the cursor, up to `limit`. Looks for matches in a stretch of some thousand calls, so that each statement is
   * short however many calls the campaign has.
   */
  list(scope: CallScope, filter: CallFilter, cursor: string | null, visibility: KeyVisibility, limit: number): Promise<CallStretch>;
  /** How many calls match, if all do that were placed in the range; up to `most`. */
  countPlaced(scope: CallScope, placed: InstantRange, most: number): Promise<number>;
  /** How many calls match in a stretch like that of `list`, by the quarter of an hour in which they were placed. */
  count(scope: CallScope, filter: CallFilter, cursor: string | null): Promise<{ counts: CountOfCampaign[]; end: StretchEnd }>;
  /** Whether the viewer sees the key, active or revoked. */
  seesKey(visibility: KeyVisibility, id: string): Promise<boolean>;
  /** @returns null if the campaign has no such call */
  find(campaignId: string, contactId: string, visibility: KeyVisibility): Promise<CallDetails | null>;
  /** The calls placed since an instant in epoch milliseconds. */
  summary(campaignId: string, since: number): Promise<CallCount[]>;
  /** The same of some campaigns, counted by day. @param days their first instants, the oldest first */
  summaryOfAll(campaignIds: readonly string[], days: readonly number[]): Promise<CountOfCampaign[]>;
  /** Sums the kept counts of ended calls up, which grow by a row for each call on PostgreSQL. Housekeeping runs it. */
  compactCounts(): Promise<void>;
};

/** Whose calls are listed: those of one campaign, of some, or of all that a viewer sees. */
export type CallScope = { kind: 'campaigns'; ids: readonly string[] } | CampaignAccess;
export type CountOfCampaign = CallCount & { campaignId: string };

/** The result of one hand-off. `detail` may have the provider's own words, and `reason` has none of them. */
export type HandoffResult =
  /** The provider has the call. It reports the outcome, or is asked to conclude it at `outcomeAt`. */
  | { kind: 'taken'; outcomeAt?: number }
  /** The provider refused the call for good. */
  | { kind: 'rejected'; detail: string; reason: string }
  /** The provider certainly does not have the call. `retryAfter` is in seconds. */
  | { kind: 'not-taken'; detail: string; reason: string; retryAfter?: number }
  /** The request was sent, and no answer came: the provider may have the call. */
  | { kind: 'answer-lost'; detail: string; reason: string };

/** The service that makes phones ring. */
export type Provider = {
  name: 'webhook' | 'simulated';
  /** Whether two hand-offs under one id make one call. */
  deduplicates: boolean;
  /** Answers within `dialingLimits.answer`. */
  handOff(call: ClaimedCall): Promise<HandoffResult>;
  /** The outcome of a taken call whose `outcomeAt` has come; null if the provider should have reported it by now. */
  conclude(call: ClaimedCall): Conclusion | null;
};

/** Moves calls through their states: see call-states.ts. Instants are epoch milliseconds. */
export type DialingStore = {
  /**
   * Claims due calls until `leaseUntil`, the oldest first and evenly from all accounts that have any. Lapses calls whose time has passed
   * undialed. No two claims of one call overlap, over all processes.
   */
  claim(limit: number, provider: Provider['name'], now: number, leaseUntil: number): Promise<ClaimedCall[]>;
  /** @returns false, and changes nothing, if another process has claimed the call since, or the call has ended */
  settle(call: ClaimedCall, settlement: Settlement): Promise<boolean>;
  /** Ends a call that is being dialed, or is `unknown` and not erased. Changes no other. @returns null if there was no such hand-off */
  reportOutcome(contactId: string, conclusion: Conclusion, now: number): Promise<'recorded' | 'not-needed' | null>;
  /** Lapses calls whose `notAfter` has passed undialed, in short steps. @returns how many */
  lapse(now: number, signal?: AbortSignal): Promise<number>;
  /** Ends calls that no dialer has claimed for `dialingLimits.life` after they were due, in short steps. @returns how many */
  endForgotten(now: number, signal?: AbortSignal): Promise<number>;
  /**
   * Makes calls due whose `due_at` only a clock that was ahead can have set: they would wait until the clock has caught up.
   *
   * @returns how many
   */
  recoverFromClockStep(now: number, signal?: AbortSignal): Promise<number>;
  /** Keeps, or with null forgets, that a core's provider takes no calls. @param core the name of its process */
  noteTrouble(core: string, trouble: DialerTrouble | null, now: number): Promise<void>;
  /** The oldest trouble that was noted since an instant. */
  findTrouble(notedSince: number): Promise<DialerTrouble | null>;
  /** Calls that wait for a dialer and are due, and since when the oldest is. */
  queue(now: number): Promise<{ due: number; oldestDueAt: number | null }>;
};

export type RetentionStore = {
  /** What a core has recorded last; null if none has. */
  recordedDays(): Promise<RetentionDays | null>;
  /** @returns what was recorded before, if that differs */
  recordDays(days: RetentionDays): Promise<RetentionDays | null>;
  /** Counts calls that ended before this and still have contact data, and finds when the oldest of all those ended. */
  countErasable(endedBefore: DateTime): Promise<{ erasable: number; oldestEndedAt: DateTime | null }>;
  /** Erases phone number, name, zone, variables and the provider's detail, in short steps. @returns of how many calls */
  erase(endedBefore: DateTime, signal?: AbortSignal): Promise<number>;
  /** Deletes counts of what happened before an instant, in short steps: they are in no chart any more. @returns how many */
  forgetCounts(before: DateTime, signal?: AbortSignal): Promise<number>;
};

/** The chain of audit events: see audit-chain.ts. */
export type AuditChainStore = {
  /** Chains the events that are not yet, the oldest first, in short steps. @returns how many */
  extend(signal?: AbortSignal): Promise<number>;
  /** The newest event in the chain, the newest that was pruned, and how many are not chained yet. */
  state(): Promise<Seal & { prunedSeq: number; prunedHash: string; unchained: number }>;
  /** Chained events in order, from after one number to another. */
  read(after: number, last: number, limit: number): Promise<ChainedEvent[]>;
  /** The instant of the oldest chained event, in epoch milliseconds. */
  oldestAt(): Promise<number | null>;
  /** Deletes the chain's oldest events, up to and with the one of this number, in short steps. @returns how many */
  prune(last: number, signal?: AbortSignal): Promise<number>;
};

/** The newest instant by a clock that was right, in epoch milliseconds: see clock.ts. */
export type ClockStore = {
  /** Null before a core has recorded one; `serverAt` is the database server's own clock, null on SQLite. */
  read(): Promise<{ newestAt: number | null; serverAt: number | null }>;
  /** Records an instant if it is newer. */
  advance(now: number): Promise<void>;
  /** Records an instant, newer or not. */
  set(now: number): Promise<void>;
};

/** What the service knows of one phone number. */
export type ContactStore = {
  /** Its calls, the newest last. Reads all calls that there are, in short steps. */
  findCalls(phone: string): Promise<ContactCall[]>;
  /** Cancels those that are queued, and erases all that have ended. Passes over those that are being dialed. */
  erase(calls: readonly CallKey[], at: DateTime): Promise<{ cancelled: number; erased: number }>;
};

export type ActivityStore = {
  record(event: AuditEvent): Promise<void>;
  /** The newest first, from after the cursor. */
  list(visibility: ActivityVisibility, filter: ActivityFilter, cursor: string | null, limit: number): Promise<ListedEvent[]>;
  /** How many match, up to `most`. */
  count(visibility: ActivityVisibility, filter: ActivityFilter, most: number): Promise<number>;
  /** The people who did something, under their latest names, and what. */
  facets(visibility: ActivityVisibility): Promise<{ actors: (Named | null)[]; actions: string[] }>;
  /** The visible events about a key, the newest first. */
  listOfApiKey(visibility: ActivityVisibility, id: string, limit: number): Promise<ListedEvent[]>;
};

export type SessionBounds = { startedAfter: DateTime; seenAfter: DateTime; before: DateTime };

/** Knows sessions by the digest of their id. */
export type SessionStore = {
  /** @returns false, and starts none, if the user no longer has that password hash, or is disabled */
  start(id: Digest, userId: string, passwordHash: string, at: DateTime, event: AuditEvent): Promise<boolean>;
  find(id: Digest): Promise<Session | null>;
  /** Changes an existing session only: a slow request must not bring a deleted session back. */
  touch(id: Digest, at: DateTime): Promise<void>;
  selectTenancy(id: Digest, tenancy: Tenancy | null, event: AuditEvent): Promise<boolean>;
  end(id: Digest, event: AuditEvent): Promise<boolean>;
  /** @returns how many there were */
  endAll(userId: string, event: AuditEvent): Promise<number>;
  /** Deletes sessions that started, or were last seen, out of bounds. */
  sweep(bounds: SessionBounds): Promise<void>;
};

export type UserStore = {
  count(): Promise<number>;
  /** Visible users whose name or email address contains the text, the oldest first. */
  list(visibility: UserVisibility | { kind: 'all' }, search: string, after: TimePosition | null, limit: number): Promise<ListedUser[]>;
  find(visibility: UserVisibility | { kind: 'all' }, id: string): Promise<ListedUser | null>;
  /** The user's keys, the newest first, and the number of their sessions. */
  deletionImpact(userId: string, after: TimePosition | null, limit: number): Promise<DeletionImpact>;
  findByEmail(email: string): Promise<Credentials | null>;
  /** @throws Problem `conflict` if the e-mail address is taken */
  create(user: NewUser, event: AuditEvent): Promise<void>;
  /**
   * Ends the user's sessions except `keep`.
   *
   * @param replacing the hash that the user must still have; null for any
   * @returns false, and changes nothing, if the user has another hash, or `keep` has ended
   */
  setPassword(userId: string, password: NewPassword, replacing: string | null, keep: Digest | null, event: AuditEvent): Promise<boolean>;
  /** Changes name and place; the user's keys follow: what they have access to at once, the lists of more than a thousand in steps. @returns false if there is no such user */
  change(userId: string, changed: UserChange, event: AuditEvent): Promise<boolean>;
  /**
   * Keeps the user and their keys out, and ends their sessions; null lets them in again.
   *
   * @returns how many sessions it ended, or null if the user was so before, or there is none
   */
  setDisabled(userId: string, disabledAt: DateTime | null, event: AuditEvent): Promise<number | null>;
  /**
   * Deletes the user with keys and sessions: at once for all who ask. The rows of more than a thousand keys go later, in steps.
   *
   * @returns how many of each, or null if there is no such user
   */
  delete(userId: string, options: RevokeOptions, event: AuditEvent): Promise<{ apiKeys: number; sessions: number } | null>;
  /** Takes away what is left of deleted users, in short steps. @returns how many keys */
  finishDeletions(signal: AbortSignal): Promise<number>;
  /** Has the keys of users who were moved follow them in lists, in short steps. @returns how many keys */
  finishMoves(signal: AbortSignal): Promise<number>;
};

export type TenancyStore = {
  findPartner(id: string): Promise<Named | null>;
  findAccount(id: string): Promise<Account | null>;
  findTenancy(choice: Pick<Tenancy, 'kind' | 'id'>): Promise<Tenancy | null>;
  createPartner(partner: Named, event: AuditEvent): Promise<void>;
  createAccount(account: Account, event: AuditEvent): Promise<void>;
  createCampaign(campaign: Named & { accountId: string }, event: AuditEvent): Promise<void>;
  /** All of them, ordered by name; for the operator. */
  allPartners(): Promise<ExternalNamed[]>;
  allAccounts(): Promise<(ExternalNamed & { partner: Named })[]>;
  allCampaigns(): Promise<(ExternalNamed & { account: Named })[]>;
  /** Ordered by name, from after the one that the cursor names. */
  listAccounts(access: CampaignAccess, filter: ListFilter, limit: number): Promise<Named[]>;
  /** Ordered by account and name. Searches the names of both, and finds a campaign by its id. */
  listCampaigns(access: CampaignAccess, filter: ListFilter, limit: number): Promise<Campaign[]>;
  /** Best match first. */
  search(text: string, limit: number): Promise<Tenancy[]>;
};

/** Partners, accounts and campaigns for those who manage them. */
export type DirectoryStore = {
  /**
   * Creates the first partner, account and campaign, all or none.
   *
   * @returns false, and creates nothing, if there is a partner; exact over all processes
   */
  setUp(
    partner: Named,
    account: Account,
    campaign: Named & { accountId: string },
    events: readonly [AuditEvent, ...AuditEvent[]],
  ): Promise<boolean>;
  /** @returns false if it doesn't exist */
  rename(kind: 'partner' | 'account' | 'campaign', thing: Named, event: AuditEvent): Promise<boolean>;
  /** Ordered by name, from after the one that the cursor names. */
  partners(access: DirectoryAccess, filter: ListFilter, limit: number): Promise<ManagedPartner[]>;
  /** Ordered by partner and name. @param partnerId null for those of all partners */
  accounts(access: DirectoryAccess, partnerId: string | null, filter: ListFilter, limit: number): Promise<ManagedAccount[]>;
  /** Ordered by partner, account and name. @param accountId null for those of all accounts */
  campaigns(access: DirectoryAccess, accountId: string | null, filter: ListFilter, limit: number): Promise<ManagedCampaign[]>;
  findPartner(access: DirectoryAccess, id: string): Promise<ManagedPartner | null>;
  findAccount(access: DirectoryAccess, id: string): Promise<ManagedAccount | null>;
  findCampaign(access: DirectoryAccess, id: string): Promise<ManagedCampaign | null>;
};

export type ImportStore = {
  /** Existing things, by external id. */
  find(kind: ImportKind, externalIds: readonly string[]): Promise<Map<string, ImportedThing>>;
  /** The users who have these e-mail addresses: external ids by address, null for a user who was not imported. */
  findEmails(emails: readonly string[]): Promise<Map<string, string | null>>;
  /**
   * Writes all of a step or nothing.
   *
   * @throws Problem `conflict` if something else has changed the same things meanwhile
   */
  write(kind: ImportKind, step: { added: readonly ImportAddition[]; changed: readonly ImportChange[] }): Promise<void>;
};

export type Stores = {
  apiKeys: ApiKeyStore;
  calls: CallStore;
  sessions: SessionStore;
  users: UserStore;
  tenancies: TenancyStore;
  directory: DirectoryStore;
  callList: CallListStore;
  activity: ActivityStore;
  dialing: DialingStore;
  retention: RetentionStore;
  auditChain: AuditChainStore;
  contacts: ContactStore;
  clock: ClockStore;
};

/** All that the domain needs of the outside. */
export type Ports = {
  clock: Clock;
  randomness: Randomness;
  passwords: Passwords;
  throttle: ThrottleStore;
  stores: Stores;
  /** API keys that one user may have which have not expired. */
  maxActiveKeys: number;
  /** Counts the outcomes that a provider reports. */
  onOutcome(state: OutcomeState): void;
};
