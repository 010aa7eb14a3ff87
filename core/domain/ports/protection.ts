import type { HoursRule } from '#contract/protection/calling-hours.ts';
import type { RestrictedKind } from '#contract/protection/numbers.ts';
import type { OptOutScope, ProtectionScope } from '#contract/protection/protection.ts';
import type { CampaignAccess } from '../directory/scope.ts';
import type { Millis } from '../instant.ts';
import type {
  AuditEvent,
  CampaignRules,
  DoNotCallEntry,
  ImportedNumber,
  ImportedNumbers,
  NewDoNotCall,
  OwningScope,
  RuleScope,
} from '../model.ts';

/** The rules that a scope itself has. Null means that it inherits them. */
export type ScopeRules = {
  hours: readonly HoursRule[] | null;
  countries: readonly string[] | null;
  kinds: readonly RestrictedKind[] | null;
};

/** Throws a problem if a scope's rules aren't those that a change is based on. */
export type CheckRules = (before: ScopeRules) => void;

/** The lists of an account, or of a partner and all its accounts. */
export type ProtectionAccess = Exclude<CampaignAccess, { kind: 'nothing' }>;

/**
 * Stores the do-not-call lists, calling hours and rules about numbers. The statements that place and claim calls check all of them
 * themselves. A change returns only once every claim that might not have seen it has ended, so no call violates an acknowledged change.
 */
export type ProtectionStore = {
  /**
   * Adds numbers to a list. A number that's already listed keeps its original date, and gets the new end date if that's later.
   *
   * @returns how many were new, and how many calls to these numbers are being dialed
   * @throws Problem `unavailable` if the numbers were added but a claim that might not have seen them is still running
   */
  addNumbers(added: NewDoNotCall, now: Millis, event: AuditEvent | null): Promise<{ added: number; known: number; beingDialed: number }>;
  /**
   * Adds any number of numbers to a list, in short transactions. The first one records the event.
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
  /** Deletes an entry. @returns false if it doesn't exist */
  lift(id: string, event: AuditEvent): Promise<boolean>;
  /** Returns a number's entries on all lists, including those that have ended. */
  entriesFor(phone: string): Promise<DoNotCallEntry[]>;
  /** Deletes a number's entries from all lists, and records the event if there were any. @returns the number of deleted entries */
  forget(phone: string, event: AuditEvent): Promise<number>;
  findEntry(access: ProtectionAccess, id: string): Promise<DoNotCallEntry | null>;
  /** Lists newest first, after the cursor (an ID). */
  listNumbers(access: ProtectionAccess, cursor: string | null, limit: number): Promise<DoNotCallEntry[]>;
  /** Lists numbers that start with the prefix, by number, after the cursor (a number and an ID). */
  searchNumbers(
    access: ProtectionAccess,
    prefix: string,
    cursor: { phone: string; id: string } | null,
    limit: number,
  ): Promise<DoNotCallEntry[]>;
  /** Returns the entries that block a number in an account now. */
  findBlocking(owner: { accountId: string; partnerId: string }, phone: string, now: Millis): Promise<DoNotCallEntry[]>;
  /** Returns a scope in the viewer's reach; null if it doesn't exist there. */
  findScope(access: ProtectionAccess | { kind: 'all' }, kind: ProtectionScope, id: string): Promise<RuleScope | null>;
  findRules(scopeId: string): Promise<ScopeRules>;
  /** Returns the rules that apply to a campaign's calls; null if it doesn't exist. */
  campaignRules(campaignId: string): Promise<CampaignRules | null>;
  /** Returns whether opt-outs during the account's calls apply to this account only or to all of its partner's accounts. */
  optOutScope(accountId: string): Promise<OptOutScope>;
  setOptOutScope(accountId: string, scope: OptOutScope, event: AuditEvent): Promise<void>;
  /** Replaces the given rules of a scope, unless the check throws. Rules can't change between the check and the replacement. */
  setRules(scope: RuleScope, change: Partial<ScopeRules>, event: AuditEvent, check: CheckRules | null): Promise<void>;
  /** Blocks the queued calls to numbers that were added since the last time, in small batches. @returns the number of calls */
  blockListed(now: Millis, signal?: AbortSignal): Promise<number>;
  /** Makes held calls due in scopes whose calling hours have changed since the last time, in small batches. @returns the number of calls */
  makeHeldDue(now: Millis, signal: AbortSignal): Promise<number>;
  /** Deletes entries that have ended, in small batches. @returns the number of entries */
  deleteEnded(now: Millis, signal?: AbortSignal): Promise<number>;
  /** Counts the calls waiting for calling hours. */
  countHeld(now: Millis): Promise<number>;
};

/** The person asked not to be called again. @property id the ID of the new entry of the do-not-call list */
export type OptOut = { id: string; buildEvent(owner: OwningScope): AuditEvent };
