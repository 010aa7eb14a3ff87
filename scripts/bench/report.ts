import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Grown, Lists } from './growth.ts';
import type { Machine } from './machine.ts';
import type { Figure } from './single-metrics.ts';
import type { Row, Spread } from './workloads.ts';

export type Results = {
  at: string;
  machine: Machine;
  rows: Row[];
  figures: Figure[];
  cores: { cores: number; perSecond: Spread }[];
  grown: Grown[];
  lists: Lists[];
};

const folder = fileURLToPath(new URL('results/', import.meta.url));
const file = `${folder}latest.json`;

/** Keeps the results of a full run; of its parts, those that were run. */
export function keep(results: Partial<Results>): Partial<Results> {
  const before: Partial<Results> = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  const all = { ...before, ...results };
  writeFileSync(file, `${JSON.stringify(all, null, 2)}\n`);
  return all;
}

export function keepPlot(svg: string): void {
  writeFileSync(`${folder}growth.svg`, svg);
}

/** As Markdown, for the terminal and for documents. */
export function tablesOf({ machine, rows = [], figures = [], cores = [], grown = [], lists = [] }: Partial<Results>): string {
  return [
    machine && `${Object.values(machine).join(', ')}\n`,
    table(
      ['', 'database', 'goal', 'of bare Koa', 'range', 'a second', 'p50 ms', 'p99 ms'],
      rows.map(({ name, database, goal, ratio, perSecond, p50, p99 }) => [
        ...[name, database, goal === null ? '' : `≥ ${goal.toFixed(2)}`, ratio.median.toFixed(2)],
        ...[`${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)}`, whole(perSecond), p50.median.toFixed(2), p99.median.toFixed(2)],
      ]),
    ),
    table(
      ['', 'database', 'goal', 'measured', ''],
      figures.map(({ name, database, goal, value, holds }) => [name, database, goal, value, holds ? 'reached' : 'missed']),
    ),
    table(
      ['cores on one PostgreSQL', 'placed a second'],
      cores.map((row) => [String(row.cores), whole(row.perSecond)]),
    ),
    table(
      ['keys, and as many calls', 'database', 'place', 'refuse an unknown key', 'cancel'],
      grown.map(({ size, database, place, refuse, cancel }) => [
        size.toLocaleString('en'),
        database,
        whole(place),
        whole(refuse),
        whole(cancel),
      ]),
    ),
    table(
      ['list of the newest 500 keys', 'of 500', 'of a million'],
      lists.map(({ database, of500, ofMillion }) => [database, `${of500.median.toFixed(1)} ms`, `${ofMillion.median.toFixed(1)} ms`]),
    ),
  ]
    .filter(Boolean)
    .join('\n');
}

function whole({ median }: Spread): string {
  return Math.round(median).toLocaleString('en');
}

function table(head: string[], lines: string[][]): string {
  if (lines.length === 0) return '';
  return `${[head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}
