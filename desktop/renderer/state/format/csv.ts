import { csvRow, csvStart } from '#contract/text/csv.ts';

/** A CSV file. */
export function toCsv(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return csvStart + [head, ...rows].map(csvRow).join('');
}
