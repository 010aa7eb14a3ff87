/** Characters at which a spreadsheet starts a formula. */
const formula = /^[\s\p{Cf}]*[=+\-@\t\r＝＋－＠]/u;

/** A file of comma-separated values (RFC 4180). A cell that a spreadsheet would run as a formula gets an apostrophe before it (OWASP, CSV injection). */
export function toCsv(head: readonly string[], rows: readonly (readonly string[])[]): string {
  // The byte order mark: without it, Excel reads UTF-8 as something else.
  return `\uFEFF${[head, ...rows].map((cells) => `${cells.map(cell).join(',')}\r\n`).join('')}`;
}

function cell(text: string): string {
  const safe = formula.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}
