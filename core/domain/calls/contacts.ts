import type { AuditAction } from '#contract/console/activity.ts';
import { limits } from '#contract/limits.ts';
import { auditEvent } from '../audit/audit.ts';
import { oneDay, plus } from '../instant.ts';
import type { Actor, AuditEvent } from '../model.ts';
import type { Clock, Ports, RetentionStore } from '../ports.ts';

/** For a request under Article 15 of the GDPR. */
export async function exportContact(ports: Ports, actor: Actor, phone: string) {
  const calls = await ports.stores.contacts.findCalls(phone);
  const entries = await ports.stores.doNotCall.entriesFor(phone);
  await ports.stores.activity.record(callsEvent(ports, actor, 'contact.exported', calls.length));
  return { calls, entries };
}

/**
 * For a request under Article 17 of the GDPR: cancels queued calls, and erases what retention would erase later. `dialing` counts the calls in
 * progress, which aren't erased until they've ended.
 */
export async function eraseContact(ports: Ports, actor: Actor, phone: string) {
  const calls = await ports.stores.contacts.findCalls(phone);
  const toEvent = (count: number) => callsEvent(ports, actor, 'contact.erased', count);
  const { cancelled, erased } = await ports.stores.contacts.erase(calls, ports.clock.now(), toEvent);
  return { erased, cancelled, dialing: calls.length - erased };
}

/** Erasing a contact doesn't do this, because someone who asked not to be called must not be called again. @returns the number of entries */
export async function forgetDoNotCall(ports: Ports, actor: Actor, phone: string): Promise<number> {
  const subject = { kind: 'do-not-call', id: ports.randomness.id(), name: 'Erased on request' } as const;
  return ports.stores.doNotCall.forget(phone, auditEvent(ports, actor, 'do-not-call.lifted', subject, null));
}

/** Has nothing that could be compared with the number, because the audit log must not keep erased data. */
function callsEvent(ports: Ports, actor: Actor, action: AuditAction, calls: number, kind: 'contact' | 'call-log' = 'contact'): AuditEvent {
  const subject = { kind, id: ports.randomness.id(), name: `${calls} calls` };
  return auditEvent(ports, actor, action, subject, null);
}

/** Erases the contact data of calls that ended more than `days` ago, but keeps their states. @returns the number of calls */
export async function eraseOldContacts(ports: Ports, actor: Actor, days: number, signal?: AbortSignal): Promise<number> {
  let erased = 0;
  try {
    await ports.stores.retention.erase(plus(ports.clock.now(), -days * oneDay), signal, (calls) => {
      erased += calls;
    });
  } finally {
    // Record them even if this was interrupted, because the next run doesn't find the calls that were already erased.
    if (erased > 0) await ports.stores.activity.record(callsEvent(ports, actor, 'retention.run', erased, 'call-log'));
  }
  return erased;
}

/** Deletes counts that are too old for any chart in any time zone. */
export function forgetOldCounts(store: RetentionStore, clock: Clock, signal?: AbortSignal): Promise<number> {
  return store.forgetCounts(plus(clock.now(), -(limits.chartDays + 1) * oneDay), signal);
}
