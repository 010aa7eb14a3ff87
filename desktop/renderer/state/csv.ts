/** Characters at which a spreadsheet starts a formula. */
const formula = /^[\s\p{Cf}]*[=+\-@\t\r＝＋－＠]/u;
/** A spreadsheet of another locale splits at semicolons or tabs. Then it ignores the quotes of all cells but the first, so line breaks split, too. */
const formulaWithin = /([;\t\r\n])(?=[\s\p{Cf}"]*[=+\-@＝＋－＠])/gu;

/** A file of comma-separated values (RFC 4180). An apostrophe goes before what a spreadsheet would run as a formula (OWASP, CSV injection). */
export function toCsv(head: readonly string[], rows: readonly (readonly string[])[]): string {
  // The byte order mark: without it, Excel reads UTF-8 as something else.
  return `\uFEFF${[head, ...rows].map((cells) => `${cells.map(cell).join(',')}\r\n`).join('')}`;
}

function cell(text: string): string {
  const within = text.replace(formulaWithin, "$1'");
  const safe = formula.test(text) ? `'${within}` : within;
  return `"${safe.replaceAll('"', '""')}"`;
}
