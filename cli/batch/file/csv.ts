import { CsvError, type Options, parse } from 'csv-parse';
import { parse as parseAtOnce } from 'csv-parse/sync';
import { counted } from '#contract/text/count.ts';
import { CallkeyError } from '../../client/errors.ts';
import { type CallColumn, callColumns, internationalNumber, isRounded, type Reading, variablePrefix } from './reading.ts';
import type { Row } from './row.ts';

const columnsHint =
  `Supported columns: ${callColumns.join(', ')}, and ${variablePrefix}NAME for a variable, separated by commas, semicolons or tabs. ` +
  'If your column has a different name, add --columns phone=NAME.';

type Cell = { column: CallColumn } | { variable: string };
type Line = { line: number; cells: string[] };

export type CsvFormat = {
  delimiter: string;
  /** The line where parsing starts: 2 after Excel's `sep=;`, otherwise 1. */
  firstLine: number;
  /** The columns by position; null for an ignored one. */
  cells: (Cell | null)[];
  /** The names of the ignored columns. */
  ignored: string[];
};

/** Longer than any call. Without this limit, the parser would read everything after an unclosed quote into one cell. */
const maxRecordLength = 256 * 1024;

function parserOptions({ delimiter, firstLine }: Pick<CsvFormat, 'delimiter' | 'firstLine'>): Options {
  return {
    delimiter,
    from_line: firstLine,
    trim: true,
    skip_empty_lines: true,
    relax_column_count: true,
    record_delimiter: ['\r\n', '\n', '\r'],
    max_record_size: maxRecordLength,
  };
}

/** Determines the format of a CSV file (RFC 4180) with a header. @param start its first lines @throws CallkeyError `usage` */
export function csvFormat(start: string, name: string, { columns }: Reading): CsvFormat {
  // Excel writes this line before the header.
  const [, delimiter] = /^sep=(.)[\r\n]/i.exec(start) ?? [];
  const layout = delimiter === undefined ? { delimiter: detectDelimiter(start), firstLine: 1 } : { delimiter, firstLine: 2 };
  const names = parseHeader(start, name, layout);
  const cells = names.map((header) => toCell(header, columns, name));
  const used = cells.filter((cell) => cell !== null);
  const seen = new Set<string>();
  for (const cell of used) {
    const id = 'column' in cell ? cell.column : variablePrefix + cell.variable;
    if (seen.has(id)) throw new CallkeyError('usage', `${name} has the column ${id} twice. Delete or rename one.`);
    seen.add(id);
  }
  for (const [column, header] of Object.entries(columns)) {
    if (!seen.has(column))
      throw new CallkeyError('usage', `${name} has no column "${header}". Its columns are: ${shorten(names.join(', '), 1_000)}.`);
  }
  if (!seen.has('phone')) throw new CallkeyError('usage', `${name} has no phone column in its first line. ${columnsHint}`);
  const ignored = names.map((header, index) => header || `column ${index + 1} (no name)`).filter((_, index) => cells[index] === null);
  return { ...layout, cells, ignored };
}

/** Returns the delimiter that occurs most often in the header, outside of quotes. */
function detectDelimiter(start: string): string {
  const [header = ''] = start
    .replace(/"[^"]*"/g, '')
    // Keeps leading tabs, because they may be delimiters.
    .replace(/^[ \r\n]+/, '')
    .split(/[\r\n]/, 1);
  const count = (delimiter: string) => header.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, next) => (count(next) > count(best) ? next : best));
}

function parseHeader(start: string, name: string, layout: Pick<CsvFormat, 'delimiter' | 'firstLine'>): string[] {
  try {
    const [header]: string[][] = parseAtOnce(start, { ...parserOptions(layout), skip_records_with_empty_values: true, to: 1 });
    if (header) return header;
  } catch (error) {
    throw malformedCsvError(error, name);
  }
  throw new CallkeyError('usage', `${name} is empty. Add a header and at least one call.`);
}

/**
 * Interprets a column name. Ignores columns without a name, which spreadsheet programs may add at the end, and with --columns, all unknown
 * columns.
 */
function toCell(header: string, columns: Reading['columns'], file: string): Cell | null {
  const mapped = Object.entries(columns).find(([, name]) => name === header)?.[0];
  const name = mapped ?? toColumnName(header);
  if (name !== undefined && (mapped !== undefined || !Object.hasOwn(columns, name))) {
    const column = callColumns.find((candidate) => candidate === name);
    return column ? { column } : { variable: name.slice(variablePrefix.length) };
  }
  if (header === '' || Object.keys(columns).length > 0) return null;
  throw new CallkeyError('usage', `${file} has an unknown column: "${shorten(header, 60)}". ${columnsHint}`);
}

/** Shortens a text, because the first line of a file that isn't a table can have any length. */
function shorten(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

/** Returns callkey's name for a column: "Time zone", time_zone and timeZone are the same. */
function toColumnName(header: string): string | undefined {
  if (header.startsWith(variablePrefix)) return header;
  const folded = header.toLowerCase().replace(/[ _-]/g, '');
  return callColumns.find((column) => column.toLowerCase() === folded);
}

/**
 * Reads the rows below the header. @throws CallkeyError `usage` at a misplaced quote, because after it, it's unclear which line ends are
 * inside cells
 */
export async function* readCsv(text: AsyncIterable<string>, format: CsvFormat, { country }: Reading, name: string): AsyncGenerator<Row> {
  const lines: Line[] = [];
  let countedTwice = 0;
  const parser = parse({
    ...parserOptions(format),
    // Rows are collected here, because the parser's readable side drops the rows before an error.
    on_record(cells, { lines: lastLine }) {
      // A quoted cell can span several lines. The parser reports the last one, and counts CR LF twice inside such a cell.
      countedTwice += countMatches(/\r\n/g, cells);
      // Spreadsheet programs save empty rows as bare delimiters.
      if (cells.some((cell) => cell.trim() !== ''))
        lines.push({ line: lastLine - countedTwice - countMatches(/\r\n|\n|\r/g, cells), cells });
      return null;
    },
  });
  // Without a listener, an error would end the process. The callbacks below receive it as well.
  parser.on('error', () => undefined);
  let isPastHeader = false;
  const toRows = () => {
    if (!isPastHeader && lines.shift()) isPastHeader = true;
    return lines.splice(0).map((line) => toRow(line, format.cells, country));
  };
  try {
    for await (const chunk of text) {
      await new Promise<void>((resolve, reject) => parser.write(chunk, (error) => (error ? reject(error) : resolve())));
      yield* toRows();
    }
    await new Promise<void>((resolve, reject) => parser.end((error?: Error | null) => (error ? reject(error) : resolve())));
    yield* toRows();
  } catch (error) {
    throw malformedCsvError(error, name);
  } finally {
    parser.destroy();
  }
}

function countMatches(form: RegExp, cells: readonly string[]): number {
  return cells.reduce((sum, cell) => sum + (/[\r\n]/.test(cell) ? (cell.match(form)?.length ?? 0) : 0), 0);
}

/** Builds a row. Omits empty cells, because every line has a cell for each column, even if the call doesn't have that field. */
function toRow({ line, cells }: Line, header: CsvFormat['cells'], country: string | null): Row {
  if (cells.length !== header.length)
    return { line, path: '', reason: `This line has ${counted(cells.length, 'cell')}, but the header has ${header.length}.` };
  const fields: Record<string, string> = {};
  const contact: Record<string, string> = {};
  const variables: Record<string, string> = {};
  let hasVariables = false;
  for (const [index, cell] of header.entries()) {
    const value = cells[index];
    if (cell === null || !value) continue;
    if ('variable' in cell) {
      // A plain assignment would lose __proto__, which must be rejected.
      Object.defineProperty(variables, cell.variable, { value, enumerable: true });
      hasVariables = true;
    } else if (cell.column === 'phone') {
      if (isRounded(value)) return { line, path: 'contact.phone', reason: roundedNumber(value) };
      contact['phone'] = country === null ? value : internationalNumber(value, country);
    } else if (cell.column === 'name' || cell.column === 'timeZone') contact[cell.column] = value;
    else fields[cell.column] = value;
  }
  return { line, input: { ...fields, contact, ...(hasVariables ? { variables } : {}) } };
}

function roundedNumber(value: string): string {
  return `A spreadsheet rounded this long number to "${value}", so its last digits are lost. Format the column as text, enter the numbers again, and save the file.`;
}

function malformedCsvError(error: unknown, name: string): unknown {
  if (!(error instanceof CsvError)) return error;
  const isTooLong = error.code === 'CSV_MAX_RECORD_SIZE' ? 'this line is too long for a call, or ' : '';
  const what = `${name}, line ${error['lines']}: ${isTooLong}there's a misplaced quotation mark at or before this line (${error.message}).`;
  return new CallkeyError('usage', `${what} Nothing was sent. Fix it and run the command again: the lines after it couldn't be read.`);
}
