import { foldText, withoutHidden } from '#contract/text/text.ts';
import type { InstantRange } from '../../domain/ports.ts';
import type { Dialect, Lane, Value } from './database.ts';

export type Condition = { sql: string; values: readonly Value[] };

/** Digits; Latin, Greek, Cyrillic and Japanese letters, with and without accents; and their East Asian forms of another width. */
const alphabets = [
  [0x30, 0x39],
  [0x41, 0x24f],
  [0x370, 0x52f],
  [0x1e00, 0x1fff],
  [0x3041, 0x30ff],
  [0xff10, 0xff9d],
] as const;

/** The letters that fold to a letter: for e, these are e, E, é, È, ê and so on. */
const variants = new Map<string, string>();
for (const [first, last] of alphabets) {
  for (let code = first; code <= last; code++) {
    const letter = String.fromCodePoint(code);
    const base = foldText(letter);
    if (/^[\p{L}\p{Nd}]$/u.test(letter) && /^[\p{L}\p{Nd}]$/u.test(base)) variants.set(base, (variants.get(base) ?? '') + letter);
  }
}

/** After this many characters, anything matches: SQLite's patterns can have 50,000 bytes, and some letters have ninety variants. */
const maxCompared = 60;

/**
 * Builds the condition that a column contains the text, ignoring case and accents. Uses character classes, because neither database can
 * ignore accents without an extension, and SQLite ignores the case of ASCII letters only.
 *
 * @param where the text must be: as the whole column, at its start, at the start of a word in it, or anywhere
 */
export function matching(dialect: Dialect, column: string, text: string, where: 'whole' | 'start' | 'word' | 'anywhere'): Condition {
  const letters = [...withoutHidden(text).normalize('NFC')]
    .flatMap((letter) => (isJoiner.test(letter) ? letter : [...foldText(letter)]))
    .map((letter, index) => (index < maxCompared ? literal(dialect, letter) : anyLetter[dialect]))
    .join('');
  if (dialect === 'postgres') {
    const patterns = { whole: `^${letters}$`, start: `^${letters}`, word: ` ${letters}`, anywhere: letters };
    return { sql: `${column} ~ ?`, values: [patterns[where]] };
  }
  const patterns = { whole: letters, start: `${letters}*`, word: `* ${letters}*`, anywhere: `*${letters}*` };
  return { sql: `${column} GLOB ?`, values: [patterns[where]] };
}

/** A joiner or selector that is visible in its place, and so is stored in names. */
const isJoiner = /^\p{Default_Ignorable_Code_Point}$/u;
const anyLetter: Record<Dialect, string> = { sqlite: '?', postgres: '.' };

function literal(dialect: Dialect, letter: string): string {
  const all = variants.get(letter);
  if (all !== undefined) return `[${all}]`;
  if (dialect === 'sqlite') return '*?['.includes(letter) ? `[${letter}]` : letter;
  return /[\p{L}\p{N}\s]/u.test(letter) ? letter : `\\${letter}`;
}

export function either(...conditions: readonly Condition[]): Condition {
  return { sql: `(${conditions.map(({ sql }) => sql).join(' OR ')})`, values: conditions.flatMap(({ values }) => values) };
}

export function equal(column: string, value: string): Condition {
  return { sql: `${column} = ?`, values: [value] };
}

export function oneOf(column: string, values: readonly string[]): Condition {
  return { sql: `${column} IN (${values.map(() => '?').join(', ') || 'NULL'})`, values };
}

/**
 * Builds the condition that a column of calls has one of the values that `from` selects. On PostgreSQL, it uses an array, because the planner
 * would turn a subquery into a join and read the calls of all campaigns in the range.
 */
export function oneSelected(kind: Dialect, column: string, selected: string, from: Condition): Condition {
  const select = `SELECT ${selected} ${from.sql}`;
  return { sql: kind === 'postgres' ? `${column} = ANY (ARRAY(${select}))` : `${column} IN (${select})`, values: from.values };
}

/** Builds the condition that all of these are true. Null and an empty list are always true. */
export function both(...conditions: readonly (Condition | null)[]): Condition {
  const parts = conditions.flatMap((condition) => (condition === null || condition.sql === always.sql ? [] : [condition]));
  return { sql: parts.map(({ sql }) => sql).join(' AND ') || always.sql, values: parts.flatMap(({ values }) => values) };
}

export const always: Condition = { sql: '1 = 1', values: [] };
export const never: Condition = { sql: '1 = 0', values: [] };

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

/** Returns where the last part starts: never before the end of the first one. They could overlap in tests, where IDs don't follow the clock. */
function startOfLast({ from, before }: InstantRange): string | null {
  const starts = [from?.highestId, before?.lowestId].filter((id) => id != null).sort();
  return starts.at(-1) ?? null;
}

function between(column: string, from: string | number | null, before: string | number | null): Condition {
  return both(
    from === null ? null : { sql: `${column} >= ?`, values: [from] },
    before === null ? null : { sql: `${column} < ?`, values: [before] },
  );
}

function rowsBetween({ columns, values }: RowPrefix, id: string, from: string | null, before: string | null): Condition {
  const bound = (operator: string, end: string | null): Condition => {
    const row = end === null ? values : [...values, end];
    const names = end === null ? columns : [...columns, id];
    return { sql: `(${names.join(', ')}) ${operator} (${row.map(() => '?').join(', ')})`, values: [...row] };
  };
  return both(bound('>=', from), bound(before === null ? '<=' : '<', before));
}

/** Counts rows up to `max`. @param parts conditions. Each row matches at most one */
export async function countUpTo({ query }: Lane, table: string, parts: readonly Condition[], max: number): Promise<number> {
  const selects = parts.map(({ sql }) => `SELECT 1 FROM ${table} WHERE ${sql}`).join(' UNION ALL ');
  const [row] = await query<{ events: number | string }>(
    `SELECT count(*) AS events FROM (${selects} LIMIT ${max}) AS matching`,
    parts.flatMap(({ values }) => values),
  );
  return Number(row?.events ?? 0);
}
