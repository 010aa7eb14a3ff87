import type { Outcome } from '#contract/calls/dialer.ts';
import { parseTimestamp } from '#contract/text/text.ts';
import { instant } from '../instant.ts';
import type { Ports } from '../ports.ts';
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
    // Don't store a future time, because it determines when contact data is erased.
    endedAt: outcome.endedAt === undefined ? now : instant(Math.min(now, parseTimestamp(outcome.endedAt))),
    durationSeconds: outcome.durationSeconds ?? null,
  };
  const result = await ports.stores.dialing.reportOutcome(outcome.handoffId, conclusion, now);
  if (result === null) throw new Problem('not-found', "This hand-off doesn't exist.");
  if (result === 'recorded') ports.onOutcome(outcome.state);
}
