/** Characters with which a spreadsheet formula starts. */
const formula = /^[\s\p{Cf}]*[=+\-@\t\r＝＋－＠]/u;
/**
 * In other locales, spreadsheets split at semicolons or tabs. They then ignore the quotes of all cells except the first, so line breaks
 * also split.
 */
const formulaWithin = /([;\t\r\n])(?=[\s\p{Cf}"]*[=+\-@＝＋－＠])/gu;

/** A file starts with this byte order mark, because otherwise Excel doesn't read it as UTF-8. */
export const csvStart = '\uFEFF';

/**
 * A row of comma-separated values (RFC 4180). Text that a spreadsheet would run as a formula is prefixed with an apostrophe (OWASP, CSV
 * injection).
 */
export function csvRow(cells: readonly string[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

function cell(text: string): string {
  const within = text.replace(formulaWithin, "$1'");
  const safe = formula.test(text) ? `'${within}` : within;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** The last line of a complete export. */
export function completeLine(rows: number): string {
  return `# complete, ${rows} rows\r\n`;
}

/** The last line of an export that ended early. */
export function incompleteLine(rows: number, why: string): string {
  return `# INCOMPLETE, ${rows} rows: ${why}\r\n`;
}
