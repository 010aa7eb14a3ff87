import type { Outcome } from '#contract/calls/dialer.ts';
import { isIdentifier, parseTimestamp } from '#contract/text/text.ts';
import { auditEvent } from '../audit/audit.ts';
import { instant, type Millis } from '../instant.ts';
import type { Actor } from '../model.ts';
import type { OptOut, Ports } from '../ports.ts';
import { Problem } from '../problem.ts';
import type { Conclusion } from './call-states.ts';

/**
 * Records the outcome that a provider reports, no matter how late. A repeated report succeeds but changes nothing, because the first
 * outcome is kept.
 */
export async function reportOutcome(ports: Ports, outcome: Outcome): Promise<void> {
  const now = ports.clock.now();
  const conclusion: Conclusion = {
    state: outcome.state,
    detail: outcome.detail ?? null,
    // Don't store a future time, because this time determines when contact data is erased.
    endedAt: outcome.endedAt === undefined ? now : instant(Math.min(now, parseTimestamp(outcome.endedAt))),
    durationSeconds: outcome.durationSeconds ?? null,
  };
  if (await report(ports, outcome.handoffId, conclusion, now, outcome.optOut)) ports.onOutcome(outcome.state);
}

/** Adds the number of a call to the do-not-call list as an outcome with an opt-out does, but without an outcome. */
export async function reportOptOut(ports: Ports, handoffId: string): Promise<void> {
  await report(ports, handoffId, null, ports.clock.now(), true);
}

/** @returns whether the outcome was recorded */
async function report(ports: Ports, handoffId: string, conclusion: Conclusion | null, now: Millis, optOut = false): Promise<boolean> {
  const { dialing } = ports.stores;
  const more = optOut ? [makeOptOut(ports)] : [];
  const result = isIdentifier(handoffId) ? await dialing.reportOutcome(handoffId, conclusion, now, ...more) : null;
  if (result === null) throw new Problem('not-found', "This hand-off doesn't exist.");
  // Don't accept an opt-out that can't be stored, because the provider would rely on it.
  if (result === 'erased')
    throw new Problem('not-found', "This call's contact data was erased, so its number can't be added to the do-not-call list.");
  if (optOut) ports.onListed();
  return result === 'recorded';
}

const provider: Actor = { who: { id: 'provider', name: 'The provider' }, address: 'provider' };

/** The number itself isn't recorded, because the audit log must not keep erased data. */
function makeOptOut(ports: Ports): OptOut {
  const id = ports.randomness.id();
  const subject = { kind: 'do-not-call', id, name: '1 number' } as const;
  return { id, buildEvent: (owner) => auditEvent(ports, provider, 'do-not-call.added', subject, owner) };
}
