import type { ActivityVisibility } from '../../domain/directory/scope.ts';
import type { ActivityFilter } from '../../domain/model.ts';
import type { RowPrefix } from '../engine/conditions.ts';
import { both, type Condition, equal } from '../engine/conditions.ts';
import type { Dialect, Lane } from '../engine/database.ts';

type Column = 'actor_id' | 'account_id' | 'partner_id' | 'subject_id' | 'action';

/** Counts rows up to `max`. @param parts conditions. Each row matches at most one */
export async function countUpTo(database: Lane, table: string, parts: readonly Condition[], max: number): Promise<number> {
  const selects = parts.map(({ sql }) => `SELECT 1 FROM ${table} WHERE ${sql}`).join(' UNION ALL ');
  const [row] = await database.query<{ events: number | string }>(
    `SELECT count(*) AS events FROM (${selects} LIMIT ${max}) AS matching`,
    parts.flatMap(({ values }) => values),
  );
  return Number(row?.events ?? 0);
}

/**
 * The table with the index to use, the condition for everything but the time range, and the order, newest first. In a sorted query on
 * PostgreSQL, `prefix` and `others` replace the condition.
 */
type Events = { table: string; where: Condition; prefix: RowPrefix | null; others: Condition; order: string };

/**
 * Builds the parts of a query for events. There's an index for each filter and for most pairs of filters (see
 * schema.sqlite.sql). If several match the filters, uses the one with the fewest events.
 */
export async function eventsIn(
  database: Lane,
  visibility: ActivityVisibility,
  { actor, action, subject }: ActivityFilter,
): Promise<Events> {
  const scope = scopeColumn(visibility);
  const requested = new Map<Column, string | null>();
  if (actor) requested.set('actor_id', actor.id);
  if (action !== null) requested.set('action', action);
  if (subject !== null) requested.set('subject_id', subject);
  const other = scope && requested.get(scope.column);
  if (!scope || (other !== undefined && other !== scope.value))
    return { table: 'audit_events', where: nothing, prefix: null, others: nothing, order: 'id' };
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

const nothing: Condition = { sql: '1 = 0', values: [] };
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
  if (kind === 'sqlite' || values.length < index.length) return { prefix: null, others: nothing };
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
export function scopeColumn(visibility: ActivityVisibility): { column: Column; value: string | null } | null {
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

/** Builds the condition that a viewer can see an event. */
export function isVisible(visibility: ActivityVisibility): Condition {
  const scope = scopeColumn(visibility);
  return scope ? isValue(scope.column, scope.value) : nothing;
}
