import type { KeyVisibility } from '../directory/scope.ts';
import type { Millis } from '../instant.ts';
import type { AddressUse, ApiKey, ApiKeyDetails, AuditEvent, Digest, KeyLimits, KeyUsage } from '../model.ts';

/** With 'later', the keys are only marked, and `finishCancelling` cancels the queued calls of all of them at once. */
export type RevokeOptions = { cancelQueuedCalls: boolean | 'later'; at: Millis };

/**
 * A key's current day, from its first instant to the next midnight. `ids` has the lowest ID of each quarter-hour of the day so far. IDs
 * from `recentId` on are those of calls placed in the last few minutes.
 */
export type Today = { day: string; from: Millis; before: Millis; ids: readonly string[]; recentId: string };

export type ApiKeyStore = {
  /**
   * @param maxActive the maximum number of the creator's active keys
   * @returns false, without creating the key, if the creator already has that many, even if several processes create keys concurrently
   */
  create(key: ApiKey, digest: Digest, maxActive: number, event: AuditEvent): Promise<boolean>;
  /** Counts a user's active keys. */
  countActive(creatorId: string, at: Millis): Promise<number>;
  /** Lists keys newest first, and by ID if they were created at the same time. `total` counts all visible keys. */
  list(visibility: KeyVisibility, limit: number): Promise<{ apiKeys: ApiKey[]; total: number }>;
  find(visibility: KeyVisibility, id: string): Promise<ApiKey | null>;
  /** Lists keys by descending ID, after the cursor, for a search through all keys. */
  page(visibility: KeyVisibility, cursor: string | null, limit: number): Promise<ApiKey[]>;
  /**
   * Returns the visible keys with these IDs, in no particular order, and waits until what was read is in effect on all nodes of the
   * database. Changes need that, because they may find that a key is already revoked or limited.
   */
  findAll(visibility: KeyVisibility, ids: readonly string[]): Promise<ApiKey[]>;
  findByDigest(visibility: KeyVisibility, digest: Digest): Promise<ApiKey | null>;
  details(visibility: KeyVisibility, id: string): Promise<ApiKeyDetails | null>;
  /** Returns what the key has done since this time. It may be up to a minute behind. */
  usage(id: string, since: Millis): Promise<KeyUsage[]>;
  /**
   * Changes the limits of a key if their version is still `before`. If the key had no daily call limit and now has one, all calls that it
   * has placed today are included in the count once this returns.
   *
   * @returns false, without changing anything, if the key was revoked or has other limits
   */
  limit(id: string, before: string | null, after: KeyLimits | null, today: Today, event: AuditEvent): Promise<boolean>;
  /** Counts again the calls that a limited key has placed today, in case an earlier change of its limits was interrupted. */
  recount(id: string, today: Today): Promise<void>;
  /** Returns how many calls a limited key has placed on a day. */
  placedOn(id: string, day: string): Promise<number>;
  /** Returns the addresses from which the key was used since this time, newest first. This may be up to a minute behind. */
  addresses(id: string, since: Millis, limit: number): Promise<AddressUse[]>;
  countQueuedCalls(id: string): Promise<number>;
  /**
   * Revokes keys in one transaction, and skips those that are already revoked.
   *
   * @param events the audit event for each key
   * @returns the IDs of the keys that it revoked
   */
  revoke(ids: readonly string[], options: RevokeOptions, events: readonly AuditEvent[]): Promise<string[]>;
  /** Cancels the calls that a revoke or deletion left for later, or couldn't cancel. @returns the number of calls */
  finishCancelling(at: Millis, signal?: AbortSignal): Promise<number>;
  /** Adds up the stored counts of keys, because on PostgreSQL each change adds a row. Housekeeping runs this. */
  compactCounts(): Promise<void>;
  /** Counts keys by the time they have left: expired, at most 7 or 30 days, longer, or without expiry. */
  countByDaysLeft(now: Millis): Promise<Record<DaysLeft, number>>;
};

export type DaysLeft = 'expired' | '7' | '30' | 'more' | 'never';
