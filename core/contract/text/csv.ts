/** Characters at which a spreadsheet starts a formula. */
const formula = /^[\s\p{Cf}]*[=+\-@\t\r＝＋－＠]/u;
/** A spreadsheet of another locale splits at semicolons or tabs. Then it ignores the quotes of all cells but the first, so line breaks split, too. */
const formulaWithin = /([;\t\r\n])(?=[\s\p{Cf}"]*[=+\-@＝＋－＠])/gu;

/** What a file begins with. Without a byte order mark, Excel reads UTF-8 as something else. */
export const csvStart = '\uFEFF';

/** A row of comma-separated values (RFC 4180). An apostrophe goes before what a spreadsheet would run as a formula (OWASP, CSV injection). */
export function csvRow(cells: readonly string[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

function cell(text: string): string {
  const within = text.replace(formulaWithin, "$1'");
  const safe = formula.test(text) ? `'${within}` : within;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** The last line of an export that has all of its rows. */
export function completeLine(rows: number): string {
  return `# complete, ${rows} rows\r\n`;
}

/** The last line of one that was ended before. */
export function incompleteLine(rows: number, why: string): string {
  return `# INCOMPLETE, ${rows} rows: ${why}\r\n`;
}
