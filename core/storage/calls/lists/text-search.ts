import { foldText, withoutHidden } from '#contract/text/text.ts';
import type { Dialect, Value } from '../../engine/database.ts';

/** An SQL condition with its values. */
export type Condition = { sql: string; values: Value[] };

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

/**
 * How many characters of the text are compared. Anything matches after that, because SQLite's patterns can have at most 50,000 bytes, and
 * some letters have ninety variants.
 */
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

/** Builds the condition that any of these is true. */
export function either(...conditions: readonly Condition[]): Condition {
  return { sql: `(${conditions.map(({ sql }) => sql).join(' OR ')})`, values: conditions.flatMap(({ values }) => values) };
}

export function equal(column: string, value: string): Condition {
  return { sql: `${column} = ?`, values: [value] };
}

/** Builds the condition that all of these are true. Null and an empty list are always true. */
export function both(...conditions: readonly (Condition | null)[]): Condition {
  const parts = conditions.flatMap((condition) => (condition === null || condition.sql === always ? [] : [condition]));
  return { sql: parts.map(({ sql }) => sql).join(' AND ') || always, values: parts.flatMap(({ values }) => values) };
}

const always = '1 = 1';
