/** Matches the apostrophe that `csvRow` has put in front of a formula. */
const guard = /(^|[;\t\r\n])'(?=[\s\p{Cf}"]*[=+\-@\t\r＝＋－＠])/gu;

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

/** Whether this is the last line of a complete export, even if a spreadsheet program has saved the file again. */
export function isCompleteLine(line: string): boolean {
  return /^"?# complete, \d+ rows"?[,;\s]*$/.test(line);
}
