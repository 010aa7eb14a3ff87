import { csvRow, csvStart } from '#contract/files/csv.ts';

export function toCsv(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return csvStart + [head, ...rows].map(csvRow).join('');
}
