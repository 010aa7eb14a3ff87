import { auditEvent } from '../audit/audit.ts';
import type { Actor, AuditAction, ContactCall } from '../model.ts';
import type { Ports } from '../ports.ts';

/** All that the service knows of a person by their phone number, for a request under Article 15 of the GDPR. */
export async function exportContact(ports: Ports, actor: Actor, phone: string): Promise<ContactCall[]> {
  const calls = await ports.stores.contacts.findCalls(phone);
  await record(ports, actor, 'contact.exported', calls.length);
  return calls;
}

/**
 * Forgets a person, for a request under Article 17: cancels what is queued for them, and erases what retention would erase later. `dialing`
 * are the calls that are under way, and stay until they have ended.
 */
export async function eraseContact(
  ports: Ports,
  actor: Actor,
  phone: string,
): Promise<{ erased: number; cancelled: number; dialing: number }> {
  const calls = await ports.stores.contacts.findCalls(phone);
  const { cancelled, erased } = await ports.stores.contacts.erase(calls, ports.clock.now());
  if (erased > 0) await record(ports, actor, 'contact.erased', erased);
  return { erased, cancelled, dialing: calls.length - erased };
}

/** Without the number, or anything that could be compared with it: the audit log must not keep what was erased. */
async function record(ports: Ports, actor: Actor, action: AuditAction, calls: number): Promise<void> {
  const subject = { kind: 'contact', id: ports.randomness.id(), name: `${calls} calls` } as const;
  await ports.stores.activity.record(auditEvent(ports, actor, action, subject, null));
}
