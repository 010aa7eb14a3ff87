import type { Knex } from 'knex';
import { budgetUsed, changesPerHour, countedActions } from '../../domain/audit/audit.ts';
import { clockSkew } from '../../domain/deadlines.ts';
import type { ActivityVisibility } from '../../domain/directory/scope.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ActivityFilter, AuditEvent, Digest, ListedEvent, Person } from '../../domain/model.ts';
import type { ActivityStore } from '../../domain/ports.ts';
import { Problem, unauthorizedDetail } from '../../domain/problem.ts';
import { changesSignIn } from '../../domain/sign-in/sessions.ts';
import { inChunks } from '../engine/chunks.ts';
import { required } from '../engine/columns.ts';
import { both, either, equal, inRange, splitRange } from '../engine/conditions.ts';
import type { Lane, Lanes } from '../engine/database.ts';
import type { AuditEventRow, UserRow } from '../engine/tables.ts';
import { countUpTo, eventsIn, isVisible, scopeColumn } from './event-search.ts';

/**
 * Records an event in the same transaction as the change, so that neither can exist without the other. If the event changes how a user
 * signs in, also ends what the user has proved so far.
 *
 * @returns the number of sessions that this ended
 * @throws Problem `unauthorized` if the session that makes the change has ended, for example while the request waited
 */
export async function recordAudit(trx: Knex.Transaction, event: AuditEvent): Promise<number> {
  await recordAudits(trx, [event]);
  return changesSignIn(event.action) ? endProofs(trx, event.subject.id, event) : 0;
}

/**
 * Ends everything that a user has proved so far, because the way in which the user signs in has changed: all sessions except the one that
 * makes the change, and everything that's only half done. See domain/sign-in/sessions.ts.
 *
 * @returns the number of sessions
 */
export async function endProofs(trx: Knex.Transaction, userId: string, { id, session }: AuditEvent): Promise<number> {
  // Change the user first, because the row's lock keeps out a sign-in that has already been checked.
  await trx('users').where({ id: userId }).update({ sign_in_version: id });
  await trx('sign_in_codes').where({ user_id: userId }).delete();
  await trx('second_factors').where({ user_id: userId, confirmed_at: null }).delete();
  const sessions = trx('sessions').where({ user_id: userId });
  return (session === undefined ? sessions : sessions.whereNot({ id: session })).delete();
}

/** Records events that don't change how users sign in: see {@link recordAudit}. */
export async function recordAudits(trx: Knex.Transaction, events: readonly AuditEvent[]): Promise<void> {
  for (const session of new Set(events.map(({ session }) => session))) if (session !== undefined) await requireSession(trx, session);
  await requireBudget(trx, events);
  await trx('audit_events').insert(events.map(toRow));
}

/**
 * Checks that the user who makes these changes hasn't made too many within the last hour: see domain/audit/audit.ts. Counts the user's own events, so
 * the limit applies to all sessions and cores together. Reads only the index of their events by action.
 *
 * @throws Problem `too-many-requests`
 */
async function requireBudget(trx: Knex.Transaction, events: readonly AuditEvent[]): Promise<void> {
  const counted = events.filter(({ budget }) => budget);
  const [first] = counted;
  if (!first?.budget || !first.actor) return;
  const { since, lowestId } = first.budget;
  const earlier = trx('audit_events').where({ actor_id: first.actor.id }).whereIn('action', countedActions).where('id', '>=', lowestId);
  // Events from the future come from a clock that was ahead, and would count for too long.
  const within = earlier
    .orderBy('id', 'desc')
    .limit(changesPerHour + 1)
    .select('at', 'action');
  const times: Millis[] = (await within).map(({ at }) => at).filter((at) => at > since && at <= first.at + clockSkew.toMillis());
  const oldest = times[changesPerHour - counted.length];
  if (oldest !== undefined) throw budgetUsed(oldest, first);
}

/** Locks the session, so that it can't end until the transaction does. @throws Problem `unauthorized` if it has ended */
export async function requireSession(trx: Knex.Transaction, id: Digest): Promise<void> {
  if ((await trx('sessions').where({ id, half_open_until: null }).forKeyShare().first('id')) === undefined)
    throw new Problem('unauthorized', unauthorizedDetail);
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

export function activityStore({ console, lists: database }: Lanes): ActivityStore {
  const { read } = database;
  const list: ActivityStore['list'] = async (visibility, filter, cursor, limit) => {
    const { table, where, prefix, others, order } = await eventsIn(database, visibility, filter);
    const { sql, values } = both(prefix ? others : where, inRange(timeColumns, filter.at, { from: null, before: cursor }, prefix));
    const rows = await database.query<AuditEventRow>(`SELECT * FROM ${table} WHERE ${sql} ORDER BY ${order} LIMIT ${limit}`, values);
    return withActors(read, rows);
  };
  return {
    async record(event) {
      await console.write.transaction((trx) => recordAudits(trx, [event]));
    },

    list,

    async count(visibility, filter, max) {
      const { table, where } = await eventsIn(database, visibility, filter);
      return countUpTo(
        database,
        table,
        splitRange(timeColumns, filter.at).map((part) => both(where, part)),
        max,
      );
    },

    async facets(visibility) {
      const operator = await list(visibility, { ...everything, actor: { id: null } }, null, 1);
      const actors = await distinct(database, visibility, 'actor_id', 'actor_name');
      const actions = await distinct(database, visibility, 'action', 'action');
      const users = await readUsers(
        read,
        actors.map(({ value }) => value),
      );
      const named = actors.map(({ value, latest }) => ({ id: value, name: latest, ...(users.get(value) ?? unknownUser) }));
      return {
        actors: [...operator.map(() => null), ...named],
        actions: actions.map(({ value }) => value),
      };
    },

    async listOfApiKey({ userId, visibility }, id, limit) {
      // Refused requests have no actor. Everyone who can see the key sees them.
      const isSeen = either(isVisible(visibility), equal('actor_id', userId), equal('action', 'api-key.refused'));
      // The kind is written as text, because the condition of a partial index doesn't match parameters.
      const { sql, values } = both({ sql: `subject_kind = 'api-key'`, values: [] }, equal('subject_id', id), isSeen);
      const rows = await database.query<AuditEventRow>(`SELECT * FROM audit_events WHERE ${sql} ORDER BY id DESC LIMIT ${limit}`, values);
      return withActors(read, rows);
    },
  };
}

/** Adds the users who acted, to show their email addresses. */
async function withActors(read: Knex, rows: readonly AuditEventRow[]): Promise<ListedEvent[]> {
  const ids = rows.map(({ actor_id }) => actor_id);
  const users = await readUsers(read, ids);
  return rows.map((row) => toEvent(row, users));
}

type ActorUsers = ReadonlyMap<string, Pick<Person, 'email' | 'isStaff'>>;
const unknownUser = { email: null, isStaff: false };

/** Reads the users who acted. For staff who were deleted, the event of their deletion still says that they were staff. */
async function readUsers(read: Knex, ids: readonly (string | null)[]): Promise<ActorUsers> {
  const distinctIds = [...new Set(ids)].filter((id) => id !== null);
  const users = new Map<string, Pick<Person, 'email' | 'isStaff'>>();
  for (const chunk of inChunks(distinctIds)) {
    const rows: Pick<UserRow, 'id' | 'email' | 'user_type' | 'deleted_at'>[] = await read('users')
      .whereIn('id', chunk)
      .select('id', 'email', 'user_type', 'deleted_at');
    for (const { id, email, user_type, deleted_at } of rows)
      users.set(id, { email: deleted_at === null ? email : null, isStaff: user_type === 'staff' });
    const gone = chunk.filter((id) => !users.has(id));
    if (gone.length === 0) continue;
    const ofService = { account_id: null, partner_id: null, action: 'user.deleted' };
    const deletedStaff: string[] = await read('audit_events').where(ofService).whereIn('subject_id', gone).pluck('subject_id');
    for (const id of deletedStaff) users.set(id, { email: null, isStaff: true });
  }
  return users;
}

function toEvent(row: AuditEventRow, users: ActorUsers): ListedEvent {
  return {
    id: row.id,
    at: row.at,
    actor:
      row.actor_id === null
        ? null
        : { id: row.actor_id, name: required(row.actor_name, 'actor_name'), ...(users.get(row.actor_id) ?? unknownUser) },
    action: row.action,
    subject: { kind: row.subject_kind, id: row.subject_id, name: row.subject_name },
    address: row.address,
    ...(row.detail === null ? {} : { detail: row.detail }),
  };
}

const timeColumns = { id: 'id', at: 'at' };
const everything: ActivityFilter = { at: { from: null, before: null }, actor: null, action: null, subject: null };

/**
 * Returns the distinct values of a column among the visible events, each with the value that another column has in the newest of these
 * events. Skips through an index from one value to the next, because a scope may have ten million events, but only a few users and actions.
 */
function distinct(database: Lane, visibility: ActivityVisibility, column: 'actor_id' | 'action', shown: 'actor_name' | 'action') {
  const { sql, values } = isVisible(visibility);
  const first = scopeColumn(visibility)?.column ?? column;
  const next = (after: string) =>
    `SELECT ${column} FROM audit_events WHERE ${sql} AND ${column} > ${after} ORDER BY ${first}, ${column} LIMIT 1`;
  return database.query<{ value: string; latest: string }>(
    `WITH RECURSIVE found (value) AS (
       SELECT (${next(`''`)}) UNION ALL SELECT (${next('found.value')}) FROM found WHERE found.value IS NOT NULL
     ) SELECT found.value, (
       SELECT ${shown} FROM audit_events WHERE ${sql} AND ${column} = found.value ORDER BY ${first} DESC, ${column} DESC, id DESC LIMIT 1
     ) AS latest FROM found WHERE found.value IS NOT NULL`,
    [...values, ...values, ...values],
  );
}
