import type { Counts } from './ledger.ts';
import { faultsOf, type Row } from './run.ts';

const columns: [string, keyof Counts][] = [
  ['sent', 'sent'],
  ['acknowledged', 'acknowledged'],
  ['lost', 'lost'],
  ['placed though 503', 'placedThough503'],
  ['dialed though cancelled', 'cancelledAndDialed'],
  ['dialed twice', 'dialedTwice'],
  ['late', 'late'],
  ['stale yes', 'staleYes'],
  ['wrongly ready', 'wronglyReady'],
  ['other', 'other'],
];

/** A Markdown table, in columns that line up on a terminal too. */
export function tableOf(rows: readonly Row[]): string {
  const cells = [['case', 'database', ...columns.map(([title]) => title), 's'], ...rows.map(cellsOf)];
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const lineOf = (line: string[]) =>
    `| ${line.map((cell, n) => (n < 2 ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))).join(' | ')} |`;
  const [head = [], ...body] = cells;
  const rule = `|${widths.map((width, n) => (n < 2 ? `${'-'.repeat(width + 2)}` : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [lineOf(head), rule, ...body.map(lineOf)].join('\n');
}

function cellsOf(row: Row): string[] {
  const counted = columns.map(([, column]) => ('skipped' in row ? '-' : String(row.counts[column])));
  return [row.name, row.kind, ...counted, String(row.seconds)];
}

/** What one case came to, in one line. */
export function lineOf(row: Row): string {
  const name = `${row.name} on ${row.kind}`;
  if ('skipped' in row) return `${name}: skipped, ${row.skipped}`;
  const faults = faultsOf(row);
  const { sent, acknowledged } = row.counts;
  const verdict = faults.length === 0 ? 'all zero' : faults.join(', ').toUpperCase();
  return `${name}: ${sent} sent, ${acknowledged} acknowledged, ${verdict} (${row.seconds} s; ${row.notes.join('; ')})`;
}
