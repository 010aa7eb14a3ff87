import type { Knex } from 'knex';
import type { ActivityStore } from '../domain/activity.ts';
import type { AuditEvent } from '../domain/audit.ts';
import type { ActivityVisibility } from '../domain/tenancy.ts';
import type { Database } from './database.ts';
import { instant } from './instants.ts';

/** Writes an event down in the transaction of what it tells. */
export function record(trx: Knex.Transaction, event: AuditEvent): Promise<void> {
  return recordAudits(trx, [event]);
}

export async function recordAudits(trx: Knex.Transaction, events: readonly AuditEvent[]): Promise<void> {
  await trx('audit_events').insert(events.map(rowOf));
}

function rowOf(event: AuditEvent) {
  return {
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
  };
}

type EventRow = {
  id: string;
  at: number;
  actor_id: string | null;
  actor_name: string | null;
  action: string;
  subject_kind: AuditEvent['subject']['kind'];
  subject_id: string;
  subject_name: string;
  address: string;
};

export function activityStore({ read }: Database): ActivityStore {
  return {
    async list(sight, cursor, limit) {
      const events = narrowToActivity(read('audit_events'), sight).orderBy('id', 'desc').limit(limit);
      if (cursor !== null) events.where('id', '<', cursor);
      const rows: EventRow[] = await events;
      return rows.map((row) => ({
        id: row.id,
        at: instant(row.at),
        actor: row.actor_id === null ? null : { id: row.actor_id, name: row.actor_name ?? '' },
        action: row.action,
        subject: { kind: row.subject_kind, id: row.subject_id, name: row.subject_name },
        address: row.address,
      }));
    },
  };
}

function narrowToActivity(events: Knex.QueryBuilder, sight: ActivityVisibility): Knex.QueryBuilder {
  switch (sight.kind) {
    case 'own':
      return events.where('actor_id', sight.userId);
    case 'account':
      return events.where('account_id', sight.accountId);
    case 'partner':
      return events.where('partner_id', sight.partnerId);
    case 'service':
      return events.whereNull('partner_id');
    case 'nothing':
      return events.whereRaw('1 = 0');
  }
}
