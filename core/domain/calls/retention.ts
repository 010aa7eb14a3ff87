import { limits } from '#contract/limits.ts';
import { auditEvent } from '../audit/audit.ts';
import { oneDay, plus } from '../instant.ts';
import type { Actor } from '../model.ts';
import type { Clock, DialingStore, Ports, RetentionStore } from '../ports.ts';

/**
 * Erases the contact data of calls that ended more than `days` ago, but keeps their states, and records an audit event. @returns the number
 * of calls
 */
export async function eraseOldContacts(ports: Ports, actor: Actor, days: number, signal?: AbortSignal): Promise<number> {
  let erased = 0;
  try {
    await ports.stores.retention.erase(plus(ports.clock.now(), -days * oneDay), signal, (calls) => {
      erased += calls;
    });
  } finally {
    // Record them even if this was interrupted, because the next run doesn't find the calls that were already erased.
    if (erased > 0) {
      const subject = { kind: 'call-log', id: ports.randomness.id(), name: `${erased} calls` } as const;
      await ports.stores.activity.record(auditEvent(ports, actor, 'retention.run', subject, null));
    }
  }
  return erased;
}

/** Ends calls that no dialer has ended in time, so that their retention periods begin. @returns the number of calls */
export async function endOverdueCalls(store: DialingStore, clock: Clock, signal?: AbortSignal): Promise<number> {
  const now = clock.now();
  await store.recoverFromClockStep(now, false, signal);
  return (await store.lapse(now, signal)) + (await store.endForgotten(now, signal));
}

/** Deletes counts that are too old for any chart in any time zone. @returns the number of counts */
export function forgetOldCounts(store: RetentionStore, clock: Clock, signal?: AbortSignal): Promise<number> {
  return store.forgetCounts(plus(clock.now(), -(limits.chartDays + 1) * oneDay), signal);
}
