import type { Knex } from 'knex';
import type { ActivityVisibility } from '../../domain/directory/scope.ts';
import type { ActivityFilter, AuditEvent, ListedEvent } from '../../domain/model.ts';
import type { ActivityStore } from '../../domain/ports.ts';
import { required } from '../engine/columns.ts';
import type { Database } from '../engine/database.ts';
import type { AuditEventRow } from '../engine/tables.ts';

/** Records an event in the transaction of the change, so that neither can exist without the other. */
export function recordAudit(trx: Knex.Transaction, event: AuditEvent): Promise<void> {
  return recordAudits(trx, [event]);
}

export async function recordAudits(trx: Knex.Transaction, events: readonly AuditEvent[]): Promise<void> {
  await trx('audit_events').insert(events.map(toRow));
}

function toRow(event: AuditEvent): AuditEventRow {
  return {
    id: event.id,
    at: event.at,
    actor_id: event.actor?.id ?? null,
    actor_name: event.actor?.name ?? null,
    action: event.action,
    subject_kind: event.subject.kind,
    subject_id: event.subject.id,
    subject_name: event.subject.name,
    account_id: event.owningScope?.accountId ?? null,
    partner_id: event.owningScope?.partnerId ?? null,
    address: event.address,
    detail: event.detail ?? null,
  };
}

export function activityStore({ read, write }: Database): ActivityStore {
  return {
    async record(event) {
      await write.transaction((trx) => recordAudit(trx, event));
    },

    async list(visibility, filter, cursor, limit) {
      const events = matching(narrowToActivity(read('audit_events'), visibility), filter)
        .orderBy('id', 'desc')
        .limit(limit);
      if (cursor !== null) events.where('id', '<', cursor);
      const rows: AuditEventRow[] = await events;
      return rows.map(eventOf);
    },

    async count(visibility, filter, most) {
      const some = matching(narrowToActivity(read('audit_events'), visibility), filter)
        .select('id')
        .limit(most);
      const [row]: { events: number | string }[] = await read.from(some.as('matching')).count({ events: '*' });
      return Number(row?.events ?? 0);
    },

    async facets(visibility) {
      const actorIds = await distinct(read, visibility, 'actor_id');
      const actors = await Promise.all(
        actorIds.map(async (id) => {
          if (id === null) return null;
          const [latest]: { actor_name: string | null }[] = await narrowToActivity(read('audit_events'), visibility)
            .where('actor_id', id)
            .orderBy('id', 'desc')
            .limit(1)
            .select('actor_name');
          return { id, name: required(latest?.actor_name ?? null, 'actor_name') };
        }),
      );
      return { actors, actions: (await distinct(read, visibility, 'action')).flatMap((action) => action ?? []) };
    },

    async listOfApiKey(visibility, id, limit) {
      // The kind is written as text, because the condition of a partial index doesn't match parameters.
      const events = read('audit_events').where({ subject_id: id }).whereRaw(`subject_kind = 'api-key'`);
      // Refused requests have no actor. Whoever can see the key sees them.
      const seen =
        visibility.kind === 'own' ? events.where((either) => isOwn(either, visibility.userId)) : narrowToActivity(events, visibility);
      const rows: AuditEventRow[] = await seen.orderBy('id', 'desc').limit(limit);
      return rows.map(eventOf);
    },
  };
}

function isOwn(events: Knex.QueryBuilder, userId: string): void {
  events.where('actor_id', userId).orWhere('action', 'api-key.refused');
}

function eventOf(row: AuditEventRow): ListedEvent {
  return {
    id: row.id,
    at: row.at,
    actor: row.actor_id === null ? null : { id: row.actor_id, name: required(row.actor_name, 'actor_name') },
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id, name: row.subject_name },
    address: row.address,
    ...(row.detail === null ? {} : { detail: row.detail }),
  };
}

function matching(events: Knex.QueryBuilder, { at, actor, action, subject }: ActivityFilter): Knex.QueryBuilder {
  if (at.from !== null) events.where('at', '>=', at.from);
  if (at.before !== null) events.where('at', '<', at.before);
  if (at.ids.from !== null) events.where('id', '>=', at.ids.from);
  if (at.ids.before !== null) events.where('id', '<', at.ids.before);
  if (actor) events.where('actor_id', actor.id);
  if (action !== null) events.where({ action });
  if (subject !== null) events.where('subject_id', subject);
  return events;
}

/**
 * Returns the distinct values of a column among the visible events. Each step in an index leads from one value to the next, because a scope
 * may have ten million events, but only a few users and actions.
 */
async function distinct(read: Knex, visibility: ActivityVisibility, column: 'actor_id' | 'action'): Promise<(string | null)[]> {
  const visible = () => narrowToActivity(read('audit_events'), visibility);
  const [without]: unknown[] = await visible().whereNull(column).select('id').limit(1);
  const found: (string | null)[] = without === undefined ? [] : [null];
  for (let after = ''; ; ) {
    const [row]: Record<string, string>[] = await visible().where(column, '>', after).orderBy(column).limit(1).select(column);
    if (!row) return found;
    after = row[column] ?? '';
    found.push(after);
  }
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
