/** Matches text that a spreadsheet would read as a formula. */
const formula = /^[\s\p{Cf}]*[=+\-@\t\r＝＋－＠]/u;
/**
 * Matches the start of a formula within a cell. In some locales, spreadsheet programs split lines at semicolons or tabs, and so ignore most
 * of our quotes. They may split a cell there, or at a line break, and run the rest as a formula. The lookahead stops at the next tab or
 * line break. Otherwise, a text of only line breaks would take quadratic time.
 */
const formulaWithin = /([;\t\r\n])(?=(?:(?![\t\r\n])[\s\p{Cf}"])*[=+\-@＝＋－＠])/gu;
/** Matches the apostrophe that `csvRow` has put in front of a formula. */
const guard = /(^|[;\t\r\n])'(?=[\s\p{Cf}"]*[=+\-@\t\r＝＋－＠])/gu;

/** A file starts with this byte order mark. Without it, Excel doesn't read the file as UTF-8. */
export const csvStart = '\uFEFF';

/**
 * Formats a row of comma-separated values (RFC 4180). Text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP,
 * CSV injection).
 */
export function csvRow(cells: readonly string[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

function cell(text: string): string {
  const within = text.replace(formulaWithin, "$1'");
  const safe = formula.test(text) ? `'${within}` : within;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** Returns the first cell of a line, whatever its delimiter, without the apostrophe that an export writes in front of a plus sign. */
export function readFirstCell(line: string): string {
  return (/^\s*"?'?([^",;\t]*)/.exec(line)?.[1] ?? '').trim();
}

/**
 * Returns a function that reads the cells of a line written by `csvRow`, possibly saved with another delimiter. After the last
 * cell, it returns an extra empty one.
 */
export function csvLineReader(delimiter: ',' | ';' | '\t'): (line: string) => string[] {
  const pattern = new RegExp(`(?:"((?:[^"]|"")*)"|([^${delimiter}]*))(?:${delimiter}|$)`, 'g');
  return (line) =>
    Array.from(line.matchAll(pattern), ([, quoted, plain = '']) => (quoted?.replaceAll('""', '"') ?? plain).replace(guard, '$1'));
}

/** Returns the last line of a complete export. */
export function completeLine(rows: number): string {
  return `# complete, ${rows} rows\r\n`;
}

/** Whether this is the last line of a complete export, even if a spreadsheet program has saved the file again. */
export function isCompleteLine(line: string): boolean {
  return /^"?# complete, \d+ rows"?[,;\s]*$/.test(line);
}

/** Returns the last line of an export that ended early. */
export function incompleteLine(rows: number, why: string): string {
  return `# INCOMPLETE, ${rows} rows: ${why}\r\n`;
}
