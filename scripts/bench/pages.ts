// Formats results, and writes them into the pages that quote them.
import { readFileSync, writeFileSync } from 'node:fs';
import type { Spread } from './spread.ts';

export const databaseLabel = (database: string) => ({ sqlite: 'SQLite', postgres: 'PostgreSQL' })[database] ?? '';
export const count = (value: number) => Math.round(value).toLocaleString('en');
export const counts = ({ median, min, max }: Spread) => `${count(median)} (${count(min)} to ${count(max)})`;
export const range = ({ min, max }: Spread, digits = 2) => `${min.toFixed(digits)} to ${max.toFixed(digits)}`;
export const withRange = (spread: Spread, digits = 2) => `${spread.median.toFixed(digits)} (${range(spread, digits)})`;
export const formatDate = (at: string) =>
  new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

/** @param goal such as `≤ 0.5 ms` */
export function reaches(goal: string, value: number): boolean {
  const limit = Number(/[\d.]+/.exec(goal)?.[0]);
  return goal.startsWith('≥') ? value >= limit : goal.startsWith('<') ? value < limit : value <= limit;
}

/** Returns the goal, if there is one, and says if a value misses it. */
export const withGoal = (goal: string, value: number) => (goal === '' || reaches(goal, value) ? goal : `${goal}, **missed**`);

export function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return `${[head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

/** Builds a table with a line for each row. @param columns their titles, and functions that format their cells */
export function tableOf<Row>(rows: readonly Row[], columns: Readonly<Record<string, (row: Row) => string>>): string {
  return table(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((format) => format(row))),
  );
}

const root = new URL('../../', import.meta.url);
export const pages = ['README.md', 'scripts/bench/README.md', 'core/docs/scaling.md', 'core/docs/operations.md', 'cli/README.md'];

/** Replaces the stored results of the same name, and the sections of the pages that quote them. */
export function keep(name: string, results: object, sections: Readonly<Record<string, string>>): void {
  writeFileSync(new URL(`results/${name}.json`, import.meta.url), readable(results));
  for (const page of pages) writeFileSync(new URL(page, root), fillIn(readFileSync(new URL(page, root), 'utf8'), sections));
}

/** Formats JSON with a line for each member, but a single line for a list of numbers. Numbers are rounded to eight digits. */
function readable(value: object): string {
  const text = JSON.stringify(value, (_key, member: unknown) => (typeof member === 'number' ? Number(member.toPrecision(8)) : member), 1);
  return `${text.replace(/\[[\s\d.,e+-]+\]/g, (list) => list.replace(/\s+/g, ' '))}\n`;
}

/**
 * Writes sections into a page of Markdown, between the comments `<!-- bench NAME -->` and `<!-- /bench -->`. Sections with
 * other names stay unchanged.
 */
export function fillIn(page: string, sections: Readonly<Record<string, string>>): string {
  return page.replace(/(<!-- bench (\S+) -->\n)(.*?)(<!-- \/bench -->)/gs, (all, begin: string, name: string, _old, end: string) => {
    const text = sections[name];
    return text === undefined ? all : `${begin}\n${text.trim()}\n\n${end}`;
  });
}
