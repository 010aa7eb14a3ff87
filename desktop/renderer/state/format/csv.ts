import { csvRow, csvStart } from '#contract/text/csv.ts';

/** Builds a CSV file. */
export function toCsv(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return csvStart + [head, ...rows].map(csvRow).join('');
}
