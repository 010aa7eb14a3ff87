import type { ActivityVisibility } from '../directory/scope.ts';
import type { ActivityFilter, AuditEvent, ChainedEvent, ListedEvent, Person, Seal } from '../model.ts';

/** The chain of audit events: see audit-chain.ts. */
export type AuditChainStore = {
  /** Chains the events that aren't chained yet, oldest first, in small batches. @returns the number of events */
  extend(signal?: AbortSignal): Promise<number>;
  /**
   * Returns the newest event in the chain, the newest pruned event, and the number of events that aren't chained yet. `lastSeq` is the
   * highest number of an event; null if there are no numbered events.
   */
  state(): Promise<Seal & { prunedSeq: number; prunedHash: string; unchained: number; lastSeq: number | null }>;
  /** Returns chained events in order, with numbers after `after` and up to `last`. */
  read(after: number, last: number, limit: number): Promise<ChainedEvent[]>;
  /** Returns the time of the oldest chained event. */
  oldestAt(): Promise<number | null>;
  /** Deletes the chain's oldest events, up to and including this number, in small batches. @returns the number of events */
  prune(last: number, signal?: AbortSignal): Promise<number>;
};

export type ActivityStore = {
  record(event: AuditEvent): Promise<void>;
  /** Lists events newest first, after the cursor. */
  list(visibility: ActivityVisibility, filter: ActivityFilter, cursor: string | null, limit: number): Promise<ListedEvent[]>;
  /** Counts matches, up to `max`. */
  count(visibility: ActivityVisibility, filter: ActivityFilter, max: number): Promise<number>;
  /** Returns the users who acted, with their current names, and the actions. */
  facets(visibility: ActivityVisibility): Promise<{ actors: (Person | null)[]; actions: string[] }>;
  /** Lists events about a key, newest first, for a viewer who can see the key: visible events, the viewer's own, and refused requests. */
  listOfApiKey(viewer: { userId: string; visibility: ActivityVisibility }, id: string, limit: number): Promise<ListedEvent[]>;
};
