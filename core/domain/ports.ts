import type { DateTime } from 'luxon';
import type { Named, UserType } from '#contract/console.ts';
import type { OutcomeState } from '#contract/dialer.ts';
import type { ActivityStore } from './activity.ts';
import type { AuditEvent } from './audit.ts';
import type { CallListStore } from './call-list.ts';
import type { DialingStore } from './dialing.ts';
import type { RetentionStore } from './retention.ts';
import type { Account, CampaignAccess, KeyVisibility, OwningScope, Tenancy, User, UserVisibility } from './tenancy.ts';

export type Clock = {
  /** The current instant, in UTC. */
  now(): DateTime<true>;
  /** The same in epoch milliseconds, for what comes by the thousand. */
  millis(): number;
};

export type Randomness = {
  /** Bytes from a cryptographic source. */
  bytes(size: number): Uint8Array;
  /** A fresh identifier. It sorts after those of earlier milliseconds, so that tables grow at their end. */
  id(): string;
};

export type Passwords = {
  /** @returns an argon2id hash in PHC form */
  hash(password: string): Promise<string>;
  /**
   * Looks the credentials up, once there is a place in the queue, and checks the password against them. Takes as long where there are none
   * as for a wrong password.
   *
   * @returns the credentials, or null when the password is not theirs
   * @throws Problem `too-many-requests` when too many verifications wait already
   */
  verify(find: () => Promise<Credentials | null>, password: string): Promise<Credentials | null>;
};

/** So many attempts (`most`) in a window, in ms from the first one. */
export type ThrottleCounter = { key: string; most: number; window: number };

/** Counts attempts, over all processes. Instants are epoch milliseconds. */
export type ThrottleStore = {
  /** @returns when the last of the full ones among these opens again, at most a window ahead; null when none is full */
  blockedUntil(counters: readonly ThrottleCounter[], now: number): Promise<number | null>;
  /** Counts in each of them or, where one is full, in none. @returns whether it counted */
  take(counters: readonly ThrottleCounter[], now: number): Promise<boolean>;
  giveBack(key: string): Promise<void>;
  reset(key: string): Promise<void>;
  /** Forgets counters that are over, and those that counted least beyond a bound in all. */
  sweep(now: number): Promise<void>;
};

export type ApiKey = {
  id: string;
  name: string;
  creator: Named;
  home: OwningScope;
  createdAt: DateTime;
  lastUsedAt: DateTime | null;
  expiresAt: DateTime | null;
  expiryTimeZone: string | null;
};

/** A SHA-256 of a key value, as 64 lower-case hexadecimal digits. */
export type Digest = string;

export type ApiKeyStore = {
  /** The key value itself is nowhere in storage, only its digest. */
  create(key: ApiKey, digest: Digest, event: AuditEvent): Promise<void>;
  /** The newest first, ties broken by id. */
  list(sight: KeyVisibility, limit: number): Promise<{ apiKeys: ApiKey[]; total: number }>;
  find(sight: KeyVisibility, id: string): Promise<ApiKey | null>;
  findByDigest(sight: KeyVisibility, digest: Digest): Promise<ApiKey | null>;
  /** Calls placed with the key that are still queued. */
  countQueuedCalls(id: string): Promise<number>;
  /** @returns whether the key still stood; nothing is done otherwise */
  revoke(id: string, options: RevokeOptions, event: AuditEvent): Promise<boolean>;
  /** Cancels what a revoke or a deletion was to cancel and could not, such as when its process died. @returns how many calls */
  finishCancelling(at: DateTime, signal: AbortSignal): Promise<number>;
  /** Keeps it quick to say how many keys there are: to be done now and then. */
  compactCounts(): Promise<void>;
};

export type RevokeOptions = { cancelQueuedCalls: boolean; at: DateTime };

/** A key, and by when its request has to be answered: milliseconds of `performance.now()`. */
export type Caller = { digest: Digest; deadline: number };

/** What a key-authenticated request asks of a campaign, and when, in epoch milliseconds. */
export type KeyedRequest = Caller & { campaignId: string; at: number };

/** What is to be kept of a placed call. */
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

export type Refusal = 'unauthorized' | 'campaign-refused';

export type Placement =
  | { kind: 'placed' }
  | { kind: 'replayed'; contactId: string; placedAt: number }
  | { kind: 'request-id-conflict' }
  | { kind: Refusal };

export type CallReference = { contactId: string } | { requestId: string };

export type Cancellation =
  | { kind: 'cancelled'; contactId: string; requestId: string; cancelledAt: number }
  | { kind: 'already-dialed' }
  | { kind: 'call-not-found' }
  | { kind: Refusal };

/**
 * The three key-authenticated operations. Each is decided by the database of record, after the request arrived; requests that are
 * under way together share a statement. A call is inserted or cancelled only by a statement that itself sees key, creator and
 * campaign still standing.
 */
export type CallStore = {
  place(request: KeyedRequest, call: NewCall): Promise<Placement>;
  cancel(request: KeyedRequest, call: CallReference): Promise<Cancellation>;
  /** Whether the key stands: all that is asked for a key that is not known to have stood. */
  isActive(key: Omit<KeyedRequest, 'campaignId'>): Promise<boolean>;
  /** Whether the key stands and reaches the campaign, for a request that goes no further. */
  authorize(request: KeyedRequest): Promise<'authorized' | Refusal>;
};

export type Session = {
  user: User;
  tenancy: Tenancy | null;
  passwordChangeDue: boolean;
  startedAt: DateTime;
  lastSeenAt: DateTime;
};

/** Session ids are kept as digests. */
export type SessionStore = {
  /** @returns false, and starts none, when the user no longer has that password hash */
  start(id: Digest, userId: string, passwordHash: string, at: DateTime, event: AuditEvent): Promise<boolean>;
  find(id: Digest): Promise<Session | null>;
  /** Acts on known sessions only: a slow request must not bring a session back. */
  touch(id: Digest, at: DateTime): Promise<void>;
  selectTenancy(id: Digest, tenancy: Tenancy | null, event: AuditEvent): Promise<boolean>;
  end(id: Digest, event: AuditEvent): Promise<boolean>;
  /** @returns how many there were */
  endAll(userId: string, event: AuditEvent): Promise<number>;
  /** Forgets sessions that started, or were seen last, out of bounds. */
  sweep(bounds: SessionBounds): Promise<void>;
};

export type SessionBounds = { startedAfter: DateTime; seenAfter: DateTime; before: DateTime };

export type Credentials = {
  user: User;
  passwordHash: string;
  /** Until when a password that somebody else chose can be used; null for one that the user chose. */
  passwordExpiresAt: DateTime | null;
};

export type NewUser = {
  id: string;
  email: string;
  name: string;
  userType: UserType;
  accountId: string | null;
  partnerId: string | null;
  password: NewPassword;
  createdAt: DateTime;
};

/** An argon2id hash, and until when the password can be used if somebody else chose it. */
export type NewPassword = { hash: string; expiresAt: DateTime | null };

export type ListedUser = User & { createdAt: DateTime; lastSignInAt: DateTime | null; apiKeys: number };

export type UserStore = {
  count(): Promise<number>;
  /** Those in sight, the oldest first; with an id, that one if it is in sight. */
  list(sight: UserVisibility | { kind: 'all' }, id?: string): Promise<ListedUser[]>;
  /** What a user has that would go with them: keys, the newest first, and the number of sessions. */
  deletionImpact(
    userId: string,
  ): Promise<{ apiKeys: { id: string; name: string; lastUsedAt: DateTime | null; queuedCalls: number }[]; sessions: number }>;
  findByEmail(email: string): Promise<Credentials | null>;
  /** @throws Problem `conflict` when the e-mail address is taken */
  add(user: NewUser, event: AuditEvent): Promise<void>;
  /**
   * Ends the user's sessions but for `keep`.
   *
   * @param replacing the hash that the user must still have; null for any
   * @returns false, and changes nothing, when the user has another one by now
   */
  setPassword(userId: string, password: NewPassword, replacing: string | null, keep: Digest | null, event: AuditEvent): Promise<boolean>;
  /** Takes keys and sessions along, in one transaction. @returns what went, or null when there was no such user */
  delete(userId: string, options: RevokeOptions, event: AuditEvent): Promise<{ apiKeys: number; sessions: number } | null>;
};

export type Campaign = Named & { account: Named };

export type TenancyStore = {
  findPartner(id: string): Promise<Named | null>;
  findAccount(id: string): Promise<Account | null>;
  createPartner(partner: Named, event: AuditEvent): Promise<void>;
  createAccount(account: Account, event: AuditEvent): Promise<void>;
  createCampaign(campaign: Named & { accountId: string }, event: AuditEvent): Promise<void>;
  listAccounts(reach: CampaignAccess): Promise<Named[]>;
  listCampaigns(reach: CampaignAccess): Promise<Campaign[]>;
  /** Best match first. */
  search(text: string, limit: number): Promise<(Tenancy & { partnerName: string | null })[]>;
};

export type Stores = {
  apiKeys: ApiKeyStore;
  calls: CallStore;
  sessions: SessionStore;
  users: UserStore;
  tenancies: TenancyStore;
  callList: CallListStore;
  activity: ActivityStore;
  dialing: DialingStore;
  retention: RetentionStore;
};

/** All that the domain needs of the outside. */
export type Ports = {
  clock: Clock;
  randomness: Randomness;
  passwords: Passwords;
  throttle: ThrottleStore;
  stores: Stores;
  /** Hears of each outcome that a provider reports. */
  onOutcome(state: OutcomeState): void;
};
