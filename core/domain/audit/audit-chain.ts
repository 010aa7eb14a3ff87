import { hash } from 'node:crypto';
import { clockSkew } from '../deadlines.ts';
import { oneDay, plus } from '../instant.ts';
import type { Actor } from '../model.ts';
import type { AuditChainStore, ChainedEvent, Ports, Seal } from '../ports.ts';
import { Problem } from '../problem.ts';
import { auditEvent } from './audit.ts';

export function chainHash(before: string, seq: number, fields: ChainedEvent['fields']): string {
  return hash('sha256', JSON.stringify([before, seq, ...fields]), 'hex');
}

const readBatchSize = 1_000;
const maxFaults = 20;

type ChainReport = Pick<Awaited<ReturnType<AuditChainStore['state']>>, 'unchained'> & {
  events: number;
  pruned: number;
  seal: Seal;
  faults: string[];
};

/**
 * Checks that each chained event follows from the one before it. If older events were deleted because of their age, the chain must contain
 * a record of that. Anyone who can write to the database can add such a record, so only a seal that's newer than the record proves it.
 *
 * @param knownSeals earlier seals, which must still be in the chain
 * @returns up to twenty faults, one sentence each; none if the chain is intact
 */
export async function verifyChain(store: AuditChainStore, knownSeals: readonly Seal[]): Promise<ChainReport> {
  const state = await store.state();
  const faults: string[] = [];
  const prunings: Pruning[] = [];
  let { prunedSeq: seq, prunedHash: before } = state;
  let eventCount = 0;
  for (
    let events = await store.read(seq, state.seq, readBatchSize);
    events.length > 0;
    events = await store.read(seq, state.seq, readBatchSize)
  ) {
    for (const event of events) {
      if (event.seq !== seq + 1) faults.push(missing(seq + 1, event.seq - 1));
      else if (!follows(before, event)) faults.push(`Event ${event.seq} doesn't match the one before it: one of the two was modified.`);
      if (knownSeals.some((seal) => event.seq === seal.seq && event.hash !== seal.hash)) faults.push(describeSealMismatch(event.seq));
      const pruning = parsePruning(event);
      if (pruning) prunings.push(pruning);
      ({ seq, hash: before } = event);
      eventCount++;
    }
  }
  if (seq < state.seq) faults.push(missing(seq + 1, state.seq));
  else if (before !== state.hash) faults.push(`Event ${seq} doesn't match the stored end of the chain: one of the two was modified.`);
  if (state.lastSeq !== null && state.lastSeq > state.seq)
    faults.push(
      `Event ${state.lastSeq} is after the end of the chain, ${state.seq}: it was added by hand, or the stored end was modified.`,
    );
  faults.push(...findPruningFaults(state, prunings, knownSeals));
  const newestSeal = newestSeq(knownSeals);
  if (newestSeal > state.seq) faults.push(`The chain ends before the seal: events ${state.seq + 1} to ${newestSeal} are missing.`);
  // Check again if a core has pruned events during this check.
  if (faults.length > 0 && (await store.state()).prunedSeq !== state.prunedSeq) return verifyChain(store, knownSeals);
  const { seq: newest, hash: seal, prunedSeq: pruned, unchained } = state;
  return { events: eventCount, unchained, pruned, seal: { seq: newest, hash: seal }, faults: faults.slice(0, maxFaults) };
}

function follows(before: string, { seq, fields, hash: own }: ChainedEvent): boolean {
  return chainHash(before, seq, fields) === own;
}

const newestSeq = (seals: readonly Seal[]) => Math.max(0, ...seals.map(({ seq }) => seq));
const describeSealMismatch = (seq: number) => `Event ${seq} doesn't match the seal.`;

/** An age-based deletion of all events up to `last`. @property recordedAs the number of the event that records it */
type Pruning = { last: Seal; recordedAs: number };

function parsePruning({ seq, fields }: ChainedEvent): Pruning | null {
  const [, , , , action, , id, name] = fields;
  const last = Number(/^\d+ to (\d+)$/.exec(String(name))?.[1]);
  // A pruning is recorded before anything is deleted, so its own number must be higher than `last`. This check also rejects NaN.
  if (action !== 'audit.pruned' || !(last < seq)) return null;
  return { last: { seq: last, hash: String(id) }, recordedAs: seq };
}

function findPruningFaults(
  { prunedSeq, prunedHash }: { prunedSeq: number; prunedHash: string },
  prunings: readonly Pruning[],
  knownSeals: readonly Seal[],
): string[] {
  if (prunedSeq === 0) return [];
  const faults = knownSeals.some(({ seq, hash }) => seq === prunedSeq && hash !== prunedHash) ? [describeSealMismatch(prunedSeq)] : [];
  const deleted = prunedSeq === 1 ? 'Event 1 was deleted' : `Events 1 to ${prunedSeq} were deleted`;
  // If a deletion was interrupted, fewer events were deleted than it recorded.
  const record = prunings.find(({ last }) => last.seq > prunedSeq || (last.seq === prunedSeq && last.hash === prunedHash));
  if (!record) return [...faults, `${deleted} by hand: the chain has no record of an age-based deletion.`];
  if (knownSeals.length === 0 || newestSeq(knownSeals) >= record.recordedAs) return faults;
  const doubt = `${deleted} after the seal was made, according to event ${record.recordedAs}. Anyone who can write to the database could have added that event.`;
  return [...faults, `${doubt} Pass a newer seal from a core's log, too.`];
}

function missing(first: number, last: number): string {
  return first === last ? `Event ${first} is missing.` : `Events ${first} to ${last} are missing.`;
}

type Prunable = { first: number; last: Seal };

/**
 * Finds events older than this many days. Returns null until the oldest one is a day overdue, because otherwise each hourly deletion would
 * add an event of its own. An event from the future was recorded by a clock that was ahead, so it's as old as the events after it.
 *
 * @throws Problem `conflict` if an event is missing or was changed, because deleting the events around it would hide that
 */
export async function findPrunable({ stores: { auditChain }, clock, adminCommand }: Ports, days: number): Promise<Prunable | null> {
  const now = clock.now();
  const before = plus(now, -days * oneDay);
  const { seq: newest, prunedSeq, prunedHash } = await auditChain.state();
  let last: Seal | null = null;
  let seal = { seq: prunedSeq, hash: prunedHash };
  const found = () => last && { first: prunedSeq + 1, last };
  for (;;) {
    const events = await auditChain.read(seal.seq, newest, readBatchSize);
    for (const event of events) {
      const isFromFuture = event.at > now + clockSkew.toMillis();
      if (!isFromFuture && event.at >= (last ? before : before - oneDay)) return found();
      if (!follows(seal.hash, event)) throw brokenChain(event.seq, adminCommand);
      seal = { seq: event.seq, hash: event.hash };
      if (!isFromFuture) last = seal;
    }
    if (events.length < readBatchSize) return found();
  }
}

function brokenChain(seq: number, adminCommand: string): Problem {
  return new Problem(
    'conflict',
    `Old audit events weren't deleted, because their chain is broken before event ${seq}. Run: ${adminCommand} audit verify`,
  );
}

/** Before it deletes anything, chains an event that records the deletion, with the hash of its last event. @returns the number of events */
export async function pruneAudit(ports: Ports, actor: Actor, days: number, signal?: AbortSignal): Promise<number> {
  const { auditChain, activity } = ports.stores;
  const prunable = await findPrunable(ports, days);
  if (!prunable) return 0;
  const { first, last } = prunable;
  const subject = { kind: 'audit-log', id: last.hash, name: `${first} to ${last.seq}` } as const;
  await activity.record(auditEvent(ports, actor, 'audit.pruned', subject, null));
  await auditChain.extend(signal);
  return auditChain.prune(last.seq, signal);
}
