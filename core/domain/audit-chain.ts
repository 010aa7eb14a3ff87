import { hash } from 'node:crypto';
import { auditEvent } from './audit.ts';
import type { Actor, ChainedEvent, Seal } from './model.ts';
import type { AuditChainStore, Ports } from './ports.ts';

/** The hash of an event, over itself and the event before: SHA-256, in hexadecimal. */
export function chainHash(before: string, seq: number, fields: ChainedEvent['fields']): string {
  return hash('sha256', JSON.stringify([before, seq, ...fields]), 'hex');
}

type ChainReport = {
  /** How many events are in the chain. */
  events: number;
  /** Events that housekeeping has not chained yet. */
  unchained: number;
  /** How many events were pruned before the first. */
  pruned: number;
  seal: Seal;
  /** A sentence each, the first twenty. Empty where all is well. */
  faults: string[];
};

const readAtOnce = 1_000;
const mostFaults = 20;

/**
 * Looks whether each chained event follows from the one before, up to the newest.
 *
 * @param known a seal from before, which must still hold; null without one
 */
export async function verifyChain(store: AuditChainStore, known: Seal | null): Promise<ChainReport> {
  const state = await store.state();
  const faults: string[] = [];
  let { prunedSeq: seq, prunedHash: before } = state;
  let events = 0;
  for (let some = await store.read(seq, state.seq, readAtOnce); some.length > 0; some = await store.read(seq, state.seq, readAtOnce)) {
    for (const event of some) {
      if (event.seq !== seq + 1) faults.push(missing(seq + 1, event.seq - 1));
      else if (chainHash(before, event.seq, event.fields) !== event.hash)
        faults.push(`Event ${event.seq} does not follow from the one before: one of the two was changed.`);
      if (event.seq === known?.seq && event.hash !== known.hash)
        faults.push(`Event ${event.seq} is not the one that the seal was made of.`);
      ({ seq, hash: before } = event);
      events++;
    }
  }
  if (seq < state.seq) faults.push(missing(seq + 1, state.seq));
  else if (before !== state.hash) faults.push(`Event ${seq} is not the newest one that was chained.`);
  if (known && known.seq > state.seq) faults.push(`The chain ends before the seal: events ${state.seq + 1} to ${known.seq} are missing.`);
  // Pruned meanwhile.
  if (faults.length > 0 && (await store.state()).prunedSeq !== state.prunedSeq) return verifyChain(store, known);
  const { seq: newest, hash: seal, prunedSeq: pruned, unchained } = state;
  return { events, unchained, pruned, seal: { seq: newest, hash: seal }, faults: faults.slice(0, mostFaults) };
}

function missing(first: number, last: number): string {
  return first === last ? `Event ${first} is missing.` : `Events ${first} to ${last} are missing.`;
}

/**
 * Deletes events older than so many days, and leaves an event that says so. Once a day at most: otherwise it would leave one each hour.
 *
 * @returns how many
 */
export async function pruneAudit(ports: Ports, actor: Actor, days: number, signal?: AbortSignal): Promise<number> {
  const { auditChain, activity } = ports.stores;
  const before = ports.clock.now().minus({ days });
  const oldest = await auditChain.oldestAt();
  if (oldest === null || oldest >= before.minus({ days: 1 }).toMillis()) return 0;
  const pruned = await auditChain.prune(before, signal);
  if (pruned > 0) {
    const subject = { kind: 'audit-log', id: ports.randomness.id(), name: `${pruned} events` } as const;
    await activity.record(auditEvent(ports, actor, 'audit.pruned', subject, null));
  }
  return pruned;
}
