import { DateTime } from 'luxon';
import type { Outcome } from '#contract/dialer.ts';
import type { Ports } from './ports.ts';
import { Problem } from './problem.ts';

/** Records what a provider reports. A repeat succeeds and changes nothing: a final state stays. */
export async function reportOutcome(ports: Ports, outcome: Outcome): Promise<void> {
  const now = ports.clock.millis();
  const known = await ports.stores.dialing.reportOutcome(outcome.handoffId, {
    state: outcome.state,
    detail: outcome.detail ?? null,
    // Never in the future: contact data is erased so many days after this instant.
    endedAt: Math.min(now, outcome.endedAt === undefined ? now : DateTime.fromISO(outcome.endedAt).toMillis()),
    durationSeconds: outcome.durationSeconds ?? null,
  });
  if (!known) throw new Problem('not-found', 'This hand-off does not exist.');
  ports.onOutcome(outcome.state);
}
