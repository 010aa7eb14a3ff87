import { UnreadableFile } from './text-file.ts';

const formula = /^[\s\p{Cf}]*[=+\-@\t\r＝＋－＠]/u;
/**
 * In some locales, spreadsheet programs split lines at semicolons or tabs, and so ignore most of our quotes. They may split a cell there, or
 * at a line break, and run the rest as a formula. The lookahead stops at the next tab or line break, because otherwise, a text of only line
 * breaks would take quadratic time.
 */
const formulaWithin = /([;\t\r\n])(?=(?:(?![\t\r\n])[\s\p{Cf}"])*[=+\-@＝＋－＠])/gu;
/** The apostrophe that `csvRow` has put in front of a formula. */
const guard = /(^|[;\t\r\n])'(?=[\s\p{Cf}"']*[=+\-@\t\r＝＋－＠])/gu;

/** A file starts with this byte order mark. Without it, Excel doesn't read the file as UTF-8. */
export const csvStart = '\uFEFF';

/** RFC 4180. Text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP, CSV injection). */
export function csvRow(cells: readonly string[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

function cell(text: string): string {
  const within = text.replace(formulaWithin, "$1'");
  const safe = formula.test(text) ? `'${within}` : within;
  return `"${safe.replaceAll('"', '""')}"`;
}

export function completeLine(rows: number): string {
  return `# complete, ${rows} rows\r\n`;
}

export function incompleteLine(rows: number, why: string): string {
  return `# INCOMPLETE, ${rows} rows: ${why}\r\n`;
}

/** @property line the number of the row's first line @property text the row as it's written, with its line end */
export type CsvRecord = { line: number; cells: string[]; text: string };

/** Longer than any row. Without this limit, everything after an unclosed quote would be read into one cell. */
const maxRecordLength = 256 * 1024;

/** Splits text into lines, which keep their line ends. */
export class LineReader {
  #rest = '';
  readonly #tooLong: (rest: string) => void;

  /** @param tooLong throws if the start of a line is too long */
  constructor(tooLong: (rest: string) => void) {
    this.#tooLong = tooLong;
  }

  push(chunk: string): string[] {
    const text = this.#rest + chunk;
    // If a chunk ends with CR, the LF may come with the next chunk.
    const lines: string[] = [];
    let start = 0;
    for (const { index, 0: lineEnd } of text.matchAll(/\r\n|\n|\r(?!$)/g)) {
      lines.push(text.slice(start, index + lineEnd.length));
      start = index + lineEnd.length;
    }
    this.#rest = text.slice(start);
    this.#tooLong(this.#rest);
    return lines;
  }

  end(): string[] {
    return this.#rest === '' ? [] : [this.#rest];
  }
}

/**
 * Reads the rows of a CSV file (RFC 4180) as its text arrives. Also reads `="…"`, with which programs keep spreadsheets from changing a
 * text, and removes the apostrophes of our own exports.
 */
export class CsvReader {
  readonly #name: string;
  readonly #lines: LineReader;
  readonly #delimiter: string;
  readonly #cell: RegExp;
  #line = 0;
  /** The lines of a row that isn't complete, because a quoted cell continues on the next line. */
  #open: string[] = [];
  #openLength = 0;

  constructor(name: string, delimiter: string) {
    this.#name = name;
    this.#delimiter = delimiter;
    this.#lines = new LineReader(({ length }) => length <= maxRecordLength || this.#fail(this.#line + 1));
    const end = `\\u${delimiter.charCodeAt(0).toString(16).padStart(4, '0')}`;
    this.#cell = new RegExp(`(?:[ \\u00a0]*=?"([^"]*(?:""[^"]*)*)"[ \\u00a0]*|([^"\\r\\n${end}]*))(${end}|\\r?\\n?$)`, 'y');
  }

  push(chunk: string): CsvRecord[] {
    return this.#lines.push(chunk).flatMap((line) => this.#add(line));
  }

  /** @throws UnreadableFile if the last quote isn't closed */
  end(): CsvRecord[] {
    const last = this.#lines.end().flatMap((line) => this.#add(line));
    if (this.#open.length > 0) this.#fail(this.#line - this.#open.length + 1);
    return last;
  }

  #add(text: string): CsvRecord[] {
    this.#line++;
    const isOpen = this.#open.length > 0;
    if (!text.includes('"')) {
      if (!isOpen) return [{ line: this.#line, cells: text.split(this.#delimiter).map((plain) => clean(plain.trim())), text }];
      this.#keep(text);
      return [];
    }
    this.#keep(text);
    // A row is complete if it has an even number of quotes.
    if ((text.split('"').length % 2 === 0) !== isOpen) return [];
    const line = this.#line - this.#open.length + 1;
    const record = this.#open.join('');
    this.#open = [];
    this.#openLength = 0;
    return [{ line, cells: this.#parse(record, line), text: record }];
  }

  #keep(text: string): void {
    this.#open.push(text);
    this.#openLength += text.length;
    if (this.#openLength > maxRecordLength) this.#fail(this.#line - this.#open.length + 1);
  }

  #parse(record: string, line: number): string[] {
    const cells: string[] = [];
    this.#cell.lastIndex = 0;
    for (;;) {
      const [, quoted, plain = '', end] = this.#cell.exec(record) ?? this.#fail(line);
      cells.push(clean(quoted?.replaceAll('""', '"') ?? plain.trim()));
      if (end !== this.#delimiter) return cells;
    }
  }

  #fail(line: number): never {
    throw new UnreadableFile(
      `${this.#name}, line ${line}: there's a misplaced quotation mark at or after the start of this line, or the line is too long. Nothing after it can be read. Fix it and try again.`,
    );
  }
}

function clean(text: string): string {
  const content = text.startsWith('="') && text.endsWith('"') ? text.slice(2, -1).replaceAll('""', '"') : text;
  return content.includes("'") ? content.replace(guard, '$1') : content;
}

export type Reader<Item> = { push(chunk: string): Item[]; end(): Item[] };

export async function* readAll<Item>(chunks: AsyncIterable<string>, reader: Reader<Item>): AsyncGenerator<Item> {
  for await (const chunk of chunks) yield* reader.push(chunk);
  yield* reader.end();
}

/** Builds the name of an exported file from its list, what it's about and its days: `calls-Reminders-2026-11-01-to-2026-11-28.csv`. */
export function csvFileName(
  list: string,
  about: string,
  { from = '', to = '' }: { from?: string | undefined; to?: string | undefined },
): string {
  const days =
    from !== '' && from === to ? from : [from === '' ? '' : from, to === '' ? '' : `to-${to}`].filter((day) => day !== '').join('-');
  const subject = Array.from(about.replace(/[^\p{L}\p{N}]+/gu, '-'))
    .slice(0, 60)
    .join('')
    .replace(/^-|-$/g, '');
  return `${[list, subject, days].filter((part) => part !== '').join('-')}.csv`;
}
