import type { Knex } from 'knex';
import { budgetUsed, changesPerHour, countedActions } from '../../domain/audit/audit.ts';
import { chainHash } from '../../domain/audit/audit-chain.ts';
import { clockSkew } from '../../domain/deadlines.ts';
import type { ActivityVisibility } from '../../domain/directory/scope.ts';
import type { Millis } from '../../domain/instant.ts';
import type { AuditEvent, Digest, Person } from '../../domain/model.ts';
import type { ActivityFilter, ActivityStore, AuditChainStore, ChainedEvent, ListedEvent } from '../../domain/ports.ts';
import { unauthorized } from '../../domain/problem.ts';
import { changesSignIn } from '../../domain/sign-in/sessions.ts';
import { both, type Condition, countUpTo, either, equal, inRange, never, type RowPrefix, splitRange } from '../engine/conditions.ts';
import { countRows, type Dialect, inChunks, inShortTransactions, type Lane, type Lanes, required } from '../engine/database.ts';
import type { AuditEventRow, UserRow } from '../engine/tables.ts';

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
  await trx('second_factors').where({ user_id: userId, confirmed_at: null }).delete();
  const sessions = trx('sessions').where({ user_id: userId });
  return (session === undefined ? sessions : sessions.whereNot({ id: session })).delete();
}

/** Records events that don't change how users sign in: see {@link recordAudit}. */
export async function recordAudits(trx: Knex.Transaction, events: readonly AuditEvent[]): Promise<void> {
  for (const session of new Set(events.map(({ session }) => session))) if (session !== undefined) await lockSession(trx, session);
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
export async function lockSession(trx: Knex.Transaction, id: Digest): Promise<void> {
  if ((await trx('sessions').where({ id, half_open_until: null }).forKeyShare().first('id')) === undefined) throw unauthorized();
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
  async function listEvents({ sql, values }: Condition, limit: number): Promise<ListedEvent[]> {
    const rows = await database.query<AuditEventRow>(`SELECT * FROM audit_events WHERE ${sql} ORDER BY id DESC LIMIT ${limit}`, values);
    return withActors(read, rows);
  }
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
      return listEvents(both({ sql: `subject_kind = 'api-key'`, values: [] }, equal('subject_id', id), isSeen), limit);
    },

    async endOfApiKey(id) {
      const isEnd = equal('action', 'api-key.revoked');
      const [event] = await listEvents(both({ sql: `subject_kind = 'api-key'`, values: [] }, equal('subject_id', id), isEnd), 1);
      return event ?? null;
    },
  };
}

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

type Column = 'actor_id' | 'account_id' | 'partner_id' | 'subject_id' | 'action';

/** `where` is for everything but the time range. In a sorted query on PostgreSQL, `prefix` and `others` replace it. */
type Events = { table: string; where: Condition; prefix: RowPrefix | null; others: Condition; order: string };

/** Builds a query for events. If several of the indexes in schema.sql match the filters, uses the one with the fewest events. */
async function eventsIn(database: Lane, visibility: ActivityVisibility, { actor, action, subject }: ActivityFilter): Promise<Events> {
  const scope = scopeColumn(visibility);
  const requested = new Map<Column, string | null>();
  if (actor) requested.set('actor_id', actor.id);
  if (action !== null) requested.set('action', action);
  if (subject !== null) requested.set('subject_id', subject);
  const other = scope && requested.get(scope.column);
  if (!scope || (other !== undefined && other !== scope.value))
    return { table: 'audit_events', where: never, prefix: null, others: never, order: 'id' };
  const indexes = indexesFor(scope.column, requested);
  requested.set(scope.column, scope.value);
  let best = { index: indexes[0] ?? [scope.column], events: Number.POSITIVE_INFINITY };
  for (const index of indexes.length > 1 ? indexes : []) {
    const columns = both(...index.map((column) => isValue(column, requested.get(column) ?? null)));
    const events = await countUpTo(database, indexed(database.kind, index), [columns], manyEvents);
    if (events < best.events) best = { index, events };
  }
  return {
    table: indexed(database.kind, best.index),
    where: conditionOn(best.index, requested),
    ...sortedBy(database.kind, best.index, requested),
    order: [...best.index, 'id'].map((column) => `${column} DESC`).join(', '),
  };
}

const manyEvents = 3_000;

/**
 * Returns the indexes to choose from, each as its columns before the ID. If all of them have many events, the first one is used. If there's
 * a filter by user, the first one begins with the user, because nearly all events of a user are in one scope.
 */
function indexesFor(scope: Column, requested: ReadonlyMap<Column, unknown>): Column[][] {
  const firsts = requested.has('actor_id') && scope !== 'actor_id' ? ['actor_id' as const, scope] : [scope];
  const pairs = firsts.flatMap((first) =>
    (['subject_id', 'actor_id', 'action'] as const)
      .filter((second) => requested.has(second) && second !== first)
      .map((second): Column[] => [first, second]),
  );
  return pairs.length > 0 ? pairs : [[scope]];
}

/** SQLite doesn't know how many events match in each index, so the query names the index to use. */
function indexed(kind: Dialect, index: readonly Column[]): string {
  const [first, second] = index.map((column) => column.replace('_id', ''));
  return kind === 'sqlite' ? `audit_events INDEXED BY audit_events_of_${first}${second ? `_by_${second}` : ''}` : 'audit_events';
}

/**
 * Builds the condition for these columns. Hides the columns that aren't in the index from PostgreSQL's planner, so that it doesn't choose
 * another index. The query must also sort by all of the index's columns, because PostgreSQL doesn't know that a column that must be null
 * has only one value.
 */
function conditionOn(index: readonly Column[], requested: ReadonlyMap<Column, string | null>): Condition {
  return both(...[...requested].map(([column, value]) => isValue(index.includes(column) ? column : `(${column} || '')`, value)));
}

/**
 * Builds the parts of a sorted query. If a column of the index were compared with a value, PostgreSQL would know that the column doesn't
 * affect the order, and might read all events, newest first, until it has found enough. Instead, the query reads the rows between two rows
 * in the order of the index, and no other index has that order. The other columns are compared as ranges, which PostgreSQL checks in the
 * index.
 */
function sortedBy(
  kind: Dialect,
  index: readonly Column[],
  requested: ReadonlyMap<Column, string | null>,
): Pick<Events, 'prefix' | 'others'> {
  const values = index.flatMap((column) => requested.get(column) ?? []);
  if (kind === 'sqlite' || values.length < index.length) return { prefix: null, others: never };
  const others = [...requested].filter(([column]) => !index.includes(column));
  const conditions = others.map(
    ([column, value]): Condition =>
      value === null ? isValue(column, value) : { sql: `${column} >= ? AND ${column} <= ?`, values: [value, value] },
  );
  return { prefix: { columns: index, values }, others: both(...conditions) };
}

function isValue(column: string, value: string | null): Condition {
  return value === null ? { sql: `${column} IS NULL`, values: [] } : equal(column, value);
}

/** Returns the column that decides who can see an event, and its value; null if the viewer can't see any. */
function scopeColumn(visibility: ActivityVisibility): { column: Column; value: string | null } | null {
  switch (visibility.kind) {
    case 'own':
      return { column: 'actor_id', value: visibility.userId };
    case 'account':
      return { column: 'account_id', value: visibility.accountId };
    case 'partner':
      return { column: 'partner_id', value: visibility.partnerId };
    case 'service':
      return { column: 'partner_id', value: null };
    case 'nothing':
      return null;
  }
}

function isVisible(visibility: ActivityVisibility): Condition {
  const scope = scopeColumn(visibility);
  return scope ? isValue(scope.column, scope.value) : never;
}

/** Small, because rows are changed one at a time, and other writers of a SQLite file should wait for only a few milliseconds. */
const chainBatchSize = 200;
const pruneBatchSize = 500;

/** Reads both ends in one statement, because a core may be extending the chain. */
const chainEnds = `SELECT seq, hash, pruned_seq AS "prunedSeq", pruned_hash AS "prunedHash",
  (SELECT max(seq) FROM audit_events WHERE seq IS NOT NULL) AS "lastSeq" FROM audit_chain`;

export function auditChainStore({ background: { read, write, query } }: Lanes): AuditChainStore {
  return {
    async extend(signal) {
      if ((await read('audit_events').whereNull('seq').first('id')) === undefined) return 0;
      const extendBatch = (limit: number) =>
        write.transaction(async (trx) => {
          // Lock the row, because two processes that chain the same events would break the chain.
          const newest = await trx('audit_chain').forUpdate().first('seq', 'hash');
          let { seq, hash } = required(newest ?? null, 'the chain');
          const rows: AuditEventRow[] = await trx('audit_events').whereNull('seq').orderBy('id').limit(limit);
          for (const row of rows) {
            seq++;
            hash = chainHash(hash, seq, toFields(row));
            await trx('audit_events').where({ id: row.id }).update({ seq, hash });
          }
          await trx('audit_chain').update({ seq, hash });
          return rows.length;
        });
      return inShortTransactions(extendBatch, chainBatchSize, signal);
    },

    async state() {
      const [[row], unchained] = await Promise.all([
        query<{ seq: number; hash: string; prunedSeq: number; prunedHash: string; lastSeq: number | null }>(chainEnds, []),
        countRows(read('audit_events').whereNull('seq')),
      ]);
      return { ...required(row ?? null, 'the chain'), unchained };
    },

    async read(after, last, limit) {
      const rows: AuditEventRow[] = await read('audit_events')
        .where('seq', '>', after)
        .where('seq', '<=', last)
        .orderBy('seq')
        .limit(limit);
      return rows.map(chainedEvent);
    },

    async oldestAt() {
      const [oldest]: { at: Millis }[] = await read('audit_events').whereNotNull('seq').orderBy('seq').limit(1).select('at');
      return oldest?.at ?? null;
    },

    async prune(last, signal) {
      const pruneBatch = (limit: number) =>
        write.transaction(async (trx) => {
          await trx('audit_chain').forUpdate().first('seq');
          const rows: AuditEventRow[] = await trx('audit_events').where('seq', '<=', last).orderBy('seq').limit(limit);
          const newest = rows.at(-1);
          if (!newest) return 0;
          const { seq, hash } = chainedEvent(newest);
          await trx('audit_chain').update({ pruned_seq: seq, pruned_hash: hash });
          const deleted: number = await trx('audit_events').where('seq', '<=', seq).delete();
          return deleted;
        });
      return inShortTransactions(pruneBatch, pruneBatchSize, signal);
    },
  };
}

function chainedEvent(row: AuditEventRow): ChainedEvent {
  const { seq = null, hash, at } = row;
  // The hash is missing only if someone has removed it. No event matches an empty hash, so the chain is then reported as broken.
  return { seq: required(seq, 'seq'), hash: hash ?? '', at, fields: toFields(row) };
}

/** Returns the first columns, and later ones unless they're null. The order must never change, because every hash would change with it. */
function toFields(row: AuditEventRow): ChainedEvent['fields'] {
  const { id, at, actor_id, actor_name, action, subject_kind, subject_id, subject_name, account_id, partner_id, address, detail } = row;
  const fields = [id, at, actor_id, actor_name, action, subject_kind, subject_id, subject_name, account_id, partner_id, address];
  return detail === null ? fields : [...fields, detail];
}
