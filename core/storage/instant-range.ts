import type { InstantRange } from '../domain/model.ts';
import { both, type Condition } from './calls/lists/text-search.ts';

type Columns = { id: string; at: string };
/** The columns of an index before the ID, and their values. */
export type RowPrefix = { columns: readonly string[]; values: readonly string[] };
/** A range of IDs that includes the first and excludes the last; null means unbounded. */
type IdRange = { from: string | null; before: string | null };

/**
 * Builds the condition for a time range. IDs narrow the search to one range of an index, and then the time in each row decides.
 *
 * @param page limits the IDs further. The SQL contains only the tighter bound at each end, because SQLite would use only one of two bounds,
 * and not always the tighter one
 */
export function inRange(
  columns: Columns,
  range: InstantRange,
  page: IdRange = { from: null, before: null },
  prefix?: RowPrefix | null,
): Condition {
  return both(idsIn(columns.id, range, page, prefix), timesIn(columns.at, range));
}

/** Builds the condition for the IDs alone. It also matches a few rows right outside the time range. */
export function idsIn(column: string, { from, before }: InstantRange, page: IdRange, prefix?: RowPrefix | null): Condition {
  const lowest = [from?.lowestId, page.from].filter((id) => id != null).sort();
  const highest = [before?.highestId, page.before].filter((id) => id != null).sort();
  const [first, end] = [lowest.at(-1) ?? null, highest[0] ?? null];
  return prefix ? rowsBetween(prefix, column, first, end) : between(column, first, end);
}

function timesIn(column: string, { from, before }: InstantRange): Condition {
  return between(column, from?.at ?? null, before?.at ?? null);
}

/**
 * Splits the condition for a time range into parts that don't overlap. In the first part, which has almost all rows, the IDs alone decide,
 * so these rows can be counted in an index.
 */
export function splitRange({ id, at }: Columns, range: InstantRange): Condition[] {
  const { from, before } = range;
  const certain = between(id, from?.highestId ?? null, before?.lowestId ?? null);
  const first = from && both(between(id, from.lowestId, from.highestId), timesIn(at, range));
  const last = before && both(idsIn(id, { from: null, before }, { from: startOfLast(range), before: null }), timesIn(at, range));
  return [certain, first, last].filter((part) => part !== null);
}

/**
 * Returns where the last part starts: never before the end of the first part. In tests, IDs don't follow the clock, so the two could
 * overlap.
 */
function startOfLast({ from, before }: InstantRange): string | null {
  return (
    [from?.highestId, before?.lowestId]
      .filter((id) => id != null)
      .sort()
      .at(-1) ?? null
  );
}

function between(column: string, from: string | number | null, before: string | number | null): Condition {
  return both(
    from === null ? null : { sql: `${column} >= ?`, values: [from] },
    before === null ? null : { sql: `${column} < ?`, values: [before] },
  );
}

/** Builds the condition for rows with the prefix and an ID between two IDs. */
function rowsBetween({ columns, values }: RowPrefix, id: string, from: string | null, before: string | null): Condition {
  const bound = (operator: string, end: string | null): Condition => {
    const row = end === null ? values : [...values, end];
    const names = end === null ? columns : [...columns, id];
    return { sql: `(${names.join(', ')}) ${operator} (${row.map(() => '?').join(', ')})`, values: [...row] };
  };
  return both(bound('>=', from), bound(before === null ? '<=' : '<', before));
}
