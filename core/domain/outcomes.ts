import { DateTime } from 'luxon';
import type { Outcome } from '#contract/dialer.ts';
import type { Ports } from './ports.ts';
import { Problem, unauthorizedDetail } from './problem.ts';

/** Takes what a provider reports. Repeats are taken, too; a final state stays as it is. */
export async function reportOutcome(ports: Ports, outcome: Outcome): Promise<void> {
  const now = ports.clock.now().toMillis();
  const known = await ports.stores.dialing.reportOutcome(outcome.handoffId, {
    state: outcome.state,
    detail: outcome.detail ?? null,
    // Never later than now: it decides when contact data is erased.
    endedAt: Math.min(now, outcome.endedAt === undefined ? now : DateTime.fromISO(outcome.endedAt).toMillis()),
    durationSeconds: outcome.durationSeconds ?? null,
  });
  if (!known) throw new Problem('unauthorized', unauthorizedDetail);
  ports.onOutcome(outcome.state);
}
