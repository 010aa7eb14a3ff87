import { eastAsianWidth } from 'get-east-asian-width';
import { oneLine } from './output.ts';

/** The maximum width of a name, in terminal columns. */
const nameWidth = 40;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Aligns columns to their widest cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows.map((row) => row.map(oneLine))];
  const widths = head.map((_, column) => all.reduce((widest, row) => Math.max(widest, displayWidth(row[column] ?? '')), 0));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - displayWidth(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Shortens a name for a table cell. Identifiers and addresses aren't shortened, because people copy them. */
export function shortName(name: string): string {
  const line = oneLine(name);
  if (displayWidth(line) <= nameWidth) return line;
  let kept = '';
  let width = 0;
  for (const { segment } of graphemes.segment(line)) {
    width += graphemeWidth(segment);
    if (width >= nameWidth) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

/**
 * Returns a text's width in terminal columns. Chinese, Japanese and Korean characters and emoji take two columns each, and combining marks
 * take no space.
 */
function displayWidth(text: string): number {
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(grapheme: string): number {
  if (/^[\p{M}\p{Cf}]+$/u.test(grapheme)) return 0;
  if (/\p{Emoji_Presentation}|\uFE0F/u.test(grapheme)) return 2;
  return eastAsianWidth(grapheme.codePointAt(0) ?? 0);
}
