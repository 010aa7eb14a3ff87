import type { Knex } from 'knex';
import type { AuditEvent } from '../domain/audit.ts';

/** Writes an event down in the transaction of what it tells. */
export async function record(trx: Knex.Transaction, event: AuditEvent): Promise<void> {
  await trx('audit_events').insert({
    id: event.id,
    at: event.at.toMillis(),
    actor_id: event.actor?.id ?? null,
    actor_name: event.actor?.name ?? null,
    action: event.action,
    subject_kind: event.subject.kind,
    subject_id: event.subject.id,
    subject_name: event.subject.name,
    account_id: event.home?.accountId ?? null,
    partner_id: event.home?.partnerId ?? null,
    address: event.address,
  });
}
