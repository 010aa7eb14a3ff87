import type { Outcome } from '#contract/calls/dialer.ts';
import { isIdentifier, parseTimestamp } from '#contract/text/text.ts';
import { auditEvent } from '../audit/audit.ts';
import { instant, type Millis } from '../instant.ts';
import type { Actor, OwningScope } from '../model.ts';
import type { Conclusion, Ports } from '../ports.ts';
import { Problem } from '../problem.ts';

/** Records an outcome no matter how late. A repeated report succeeds, but the first outcome is kept. */
export async function reportOutcome(ports: Ports, outcome: Outcome): Promise<void> {
  const now = ports.clock.now();
  const conclusion: Conclusion = {
    state: outcome.state,
    detail: outcome.detail ?? null,
    // Don't store a future time, because this time determines when contact data is erased.
    endedAt: outcome.endedAt === undefined ? now : instant(Math.min(now, parseTimestamp(outcome.endedAt))),
    durationSeconds: outcome.durationSeconds ?? null,
    ...(outcome.answeredBy && { answeredBy: outcome.answeredBy }),
  };
  if (await report(ports, outcome.handoffId, conclusion, now, outcome.optOut)) ports.onOutcome(outcome.state);
}

export async function reportOptOut(ports: Ports, handoffId: string): Promise<void> {
  await report(ports, handoffId, null, ports.clock.now(), true);
}

/** @returns whether the outcome was recorded */
async function report(ports: Ports, handoffId: string, conclusion: Conclusion | null, now: Millis, optOut = false): Promise<boolean> {
  const { dialing } = ports.stores;
  // The number itself isn't recorded, because the audit log must not keep erased data.
  const toEvent = (owner: OwningScope) =>
    auditEvent(ports, provider, 'do-not-call.added', { kind: 'do-not-call', id: ports.randomness.id(), name: '1 number' }, owner);
  const result = isIdentifier(handoffId) ? await dialing.recordOutcome(handoffId, conclusion, now, optOut ? toEvent : undefined) : null;
  if (result === null) throw new Problem('not-found', "This hand-off doesn't exist.");
  // Don't accept an opt-out that can't be stored, because the provider would rely on it.
  if (result === 'erased')
    throw new Problem('not-found', "This call's contact data was erased, so its number can't be added to the do-not-call list.");
  if (optOut) ports.onDoNotCallAdded();
  return result === 'recorded';
}

const provider: Actor = { who: { id: 'provider', name: 'The provider' }, address: 'provider' };
