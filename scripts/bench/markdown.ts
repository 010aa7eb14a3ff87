import type { Spread } from './spread.ts';

// Formats results for the pages.
export const databaseLabel = (database: string) => ({ sqlite: 'SQLite', postgres: 'PostgreSQL' })[database] ?? '';
export const count = (value: number) => Math.round(value).toLocaleString('en');
export const counts = ({ median, min, max }: Spread) => `${count(median)} (${count(min)} to ${count(max)})`;
export const range = ({ min, max }: Spread, digits = 2) => `${min.toFixed(digits)} to ${max.toFixed(digits)}`;
export const withRange = (spread: Spread, digits = 2) => `${spread.median.toFixed(digits)} (${range(spread, digits)})`;
export const missed = (holds: boolean | null) => (holds === null ? ", can't be decided here" : holds ? '' : ', **missed**');
export const formatDate = (at: string) =>
  new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

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
