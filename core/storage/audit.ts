import type { Knex } from 'knex';
import type { AuditEvent, ListedEvent } from '../domain/model.ts';
import type { ActivityStore } from '../domain/ports.ts';
import type { ActivityVisibility } from '../domain/scope.ts';
import { instant, required } from './columns.ts';
import type { Database } from './database.ts';
import type { AuditEventRow } from './tables.ts';

/** In the transaction of the change: neither is there without the other. */
export function recordAudit(trx: Knex.Transaction, event: AuditEvent): Promise<void> {
  return recordAudits(trx, [event]);
}

export async function recordAudits(trx: Knex.Transaction, events: readonly AuditEvent[]): Promise<void> {
  await trx('audit_events').insert(events.map(rowOf));
}

function rowOf(event: AuditEvent): AuditEventRow {
  return {
    id: event.id,
    at: event.at.toMillis(),
    actor_id: event.actor?.id ?? null,
    actor_name: event.actor?.name ?? null,
    action: event.action,
    subject_kind: event.subject.kind,
    subject_id: event.subject.id,
    subject_name: event.subject.name,
    account_id: event.owningScope?.accountId ?? null,
    partner_id: event.owningScope?.partnerId ?? null,
    address: event.address,
  };
}

export function activityStore({ read, write }: Database): ActivityStore {
  return {
    async record(event) {
      await write.transaction((trx) => recordAudit(trx, event));
    },

    async list(visibility, cursor, limit) {
      const events = narrowToActivity(read('audit_events'), visibility).orderBy('id', 'desc').limit(limit);
      if (cursor !== null) events.where('id', '<', cursor);
      const rows: AuditEventRow[] = await events;
      return rows.map(eventOf);
    },

    async listOfApiKey(visibility, id, limit) {
      // The kind as text: the condition of a partial index matches no parameter.
      const events = read('audit_events').where({ subject_id: id }).whereRaw(`subject_kind = 'api-key'`);
      const rows: AuditEventRow[] = await narrowToActivity(events, visibility).orderBy('id', 'desc').limit(limit);
      return rows.map(eventOf);
    },
  };
}

function eventOf(row: AuditEventRow): ListedEvent {
  return {
    id: row.id,
    at: instant(row.at),
    actor: row.actor_id === null ? null : { id: row.actor_id, name: required(row.actor_name, 'actor_name') },
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id, name: row.subject_name },
    address: row.address,
  };
}

function narrowToActivity(events: Knex.QueryBuilder, visibility: ActivityVisibility): Knex.QueryBuilder {
  switch (visibility.kind) {
    case 'own':
      return events.where('actor_id', visibility.userId);
    case 'account':
      return events.where('account_id', visibility.accountId);
    case 'partner':
      return events.where('partner_id', visibility.partnerId);
    case 'service':
      return events.whereNull('partner_id');
    case 'nothing':
      return events.whereRaw('1 = 0');
  }
}
