import type { CampaignAccess, KeyVisibility } from '../directory/scope.ts';
import type { Millis } from '../instant.ts';
import type {
  ActiveKey,
  AuditEvent,
  CallCount,
  CallDetails,
  Caller,
  CallFilter,
  CallKey,
  CallReference,
  CallStretch,
  ContactCall,
  KnownCaller,
  NewCall,
  Objection,
  RetentionDays,
  StretchEnd,
} from '../model.ts';

/** A key-authenticated request. */
export type KeyedRequest = KnownCaller & { campaignId: string; at: Millis };

export type Refusal = 'unauthorized' | 'campaign-refused';

/** `placedToday` counts the calls of a key that has a daily call limit; null for other keys. */
export type Placement =
  /** `heldUntil` is when calling hours allow the call; null if they allow it now, or none apply. */
  | { kind: 'placed'; heldUntil: Millis | null; placedToday: number | null }
  | { kind: 'replayed'; contactId: string; placedAt: Millis; heldUntil: Millis | null; placedToday: number | null }
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
 * Runs the three key-authenticated operations. The database decides each one, in a statement that starts after the request arrived. The
 * statement that inserts or cancels a call also checks the key, its creator and the campaign. Concurrent requests share a statement.
 *
 * If an operation throws a Problem, nothing was placed or cancelled. If the result isn't known, `place` and `cancel` throw ResultUnknown.
 */
export type CallStore = {
  place(request: KeyedRequest, call: NewCall): Promise<Placement>;
  cancel(request: KeyedRequest, call: CallReference): Promise<Cancellation>;
  /** @returns null for a key that isn't active, or not accepted from that address */
  findActive(key: Caller & { at: Millis }): Promise<ActiveKey | null>;
  authorize(request: KeyedRequest): Promise<'authorized' | Refusal>;
};

export type CallListStore = {
  hasCampaign(access: CampaignAccess, campaignId: string): Promise<boolean>;
  /**
   * Lists up to `limit` calls, newest first, after the cursor. Searches only a stretch of a few thousand calls, so that each statement is
   * short, no matter how many calls the campaign has.
   */
  list(scope: CallScope, filter: CallFilter, cursor: string | null, visibility: KeyVisibility, limit: number): Promise<CallStretch>;
  /** Counts matching calls, up to `max`. @returns null if it would have to read too many calls that don't match */
  countUpTo(scope: CallScope, filter: CallFilter, max: number): Promise<number | null>;
  /** Counts the matching calls in one stretch, as in `list`, by the quarter-hour when they were placed. */
  count(scope: CallScope, filter: CallFilter, cursor: string | null): Promise<{ counts: CountOfCampaign[]; end: StretchEnd }>;
  /** Whether the viewer can see the key, active or revoked. */
  seesKey(visibility: KeyVisibility, id: string): Promise<boolean>;
  /** Finds a call. @returns null if the campaign doesn't have it */
  find(campaignId: string, contactId: string, visibility: KeyVisibility): Promise<CallDetails | null>;
  /** Counts the calls placed since this time. */
  summary(campaignId: string, since: Millis): Promise<CallCount[]>;
  /**
   * Counts the calls of several campaigns by day.
   *
   * @param days the first instants of the days, oldest first
   * @param before the end of the last day; null to count later calls on that day
   */
  summaryOfAll(campaignIds: readonly string[], days: readonly Millis[], before: Millis | null): Promise<CountOfCampaign[]>;
  /** Adds up the stored counts of ended calls, because on PostgreSQL each call adds a row. Housekeeping runs this. */
  compactCounts(): Promise<void>;
};

/** The campaigns to list calls from: one, several, or all that a viewer can see. */
export type CallScope = { kind: 'campaigns'; ids: readonly string[] } | CampaignAccess;

export type CountOfCampaign = CallCount & { campaignId: string };

export type RetentionStore = {
  /** Returns the last recorded settings; null if no core has recorded any. */
  recordedDays(): Promise<RetentionDays | null>;
  /** Records the settings. @returns the previous ones if they were different */
  recordDays(days: RetentionDays): Promise<RetentionDays | null>;
  /** Counts the calls that ended before this time and still have contact data, and returns when the oldest call with contact data ended. */
  countErasable(endedBefore: Millis): Promise<{ erasable: number; oldestEndedAt: Millis | null }>;
  /**
   * Erases phone number, name, time zone, variables and the provider's detail, in small batches.
   *
   * @param onErased called with the number of calls in each batch
   * @returns the number of calls
   */
  erase(endedBefore: Millis, signal?: AbortSignal, onErased?: (calls: number) => void): Promise<number>;
  /** Deletes counts from before this time, because charts no longer show them, in small batches. @returns the number of counts */
  forgetCounts(before: Millis, signal?: AbortSignal): Promise<number>;
};

/** Everything that's stored about one phone number. */
export type ContactStore = {
  /** Returns the number's calls, oldest first. Reads all calls, in small batches. */
  findCalls(phone: string): Promise<ContactCall[]>;
  /**
   * Cancels queued calls, and erases the data of calls that have ended. Skips calls that are being dialed.
   *
   * @param toEvent builds the event that each transaction records, from the number of calls that it has erased
   */
  erase(calls: readonly CallKey[], at: Millis, toEvent: (erased: number) => AuditEvent): Promise<{ cancelled: number; erased: number }>;
};
