import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { type CsvRecord, LineReader, readAll } from '#contract/files/csv.ts';
import { copyToUnnamedFile, type OpenFile, openFile, toOpenFile } from '#contract/files/open-file.ts';
import { callsHead, doNotCallHead, findPhoneColumns, isExport, looksLikePhone, openTable } from '#contract/files/table.ts';
import { interpret, openText, type TextFile, UnreadableFile } from '#contract/files/text-file.ts';
import { counted } from '#contract/text/count.ts';
import { parseJson } from '#contract/text/json.ts';
import { usageError } from '../client/errors.ts';
import { diskError, makeFolder, stateAdvice } from '../state/durable-file.ts';
import type { Folders } from '../state/folders.ts';
import { type CallColumn, callColumns, type Reading, variablePrefix } from './reading.ts';

/** A file of calls. Each time it's read, it's streamed from the start, so its length doesn't matter. */
export type CallFile = {
  name: string;
  path: string | null;
  /** SHA-256 of the file, in hexadecimal. */
  content: string;
  reading: Reading;
  /** Notes about how the file is read. */
  notes: string[];
  /** An upper bound on the number of lines. */
  lines: number;
  rows(): AsyncGenerator<Row>;
  close(): Promise<void>;
};

/** A line before it's checked: its values, or the reason why it can't be read, with the path of the invalid field, if any. */
export type Row = { line: number; input: unknown } | { line: number; path: string; reason: string };

type Rows = { notes: string[]; rows(): AsyncGenerator<Row> };
/** `check` is for --dry-run. */
type Purpose = 'place' | 'check' | 'cancel';
type Machine = { stdin: AsyncIterable<Uint8Array>; folders: Folders };

/** @param from a path, or `-` for standard input @throws CallkeyError `usage` if the file can't be split into lines */
export async function openCallFile(machine: Machine, from: string, reading: Reading, purpose: Purpose = 'place'): Promise<CallFile> {
  if (from === '') throw usageError('--from: specify a file, or - for standard input.');
  const source = await openSource(machine, from, purpose).catch(throwAsUsage);
  try {
    const digest = createHash('sha256');
    const text = await openText(source, (chunk) => digest.update(chunk));
    const { notes, rows } = openRows(text, reading, purpose);
    return {
      ...{ name: source.name, path: source.path, content: digest.digest('hex'), reading, lines: text.lines },
      notes: [...text.notes, ...notes],
      async *rows() {
        try {
          yield* rows();
        } catch (error) {
          throwAsUsage(error);
        }
      },
      close: source.close,
    };
  } catch (error) {
    await source.close();
    return throwAsUsage(error);
  }
}

/**
 * Opens a file. To place its calls, copies it first: then it's read only once, and the lines that are sent are the ones that were checked,
 * whatever happens to the file. Cancelling must also work if the disk is full, and --dry-run if no folder is writable.
 */
async function openSource({ stdin, folders }: Machine, from: string, purpose: Purpose): Promise<OpenFile> {
  if (from === '-') return toOpenFile(await copy(stdin, 'standard input', folders), 'Standard input', null);
  const source = await openFile(from, (pipe) => copy(pipe, from, folders));
  if (purpose !== 'place' || source.path === null) return source;
  try {
    return toOpenFile(await copy(source.chunks(), from, folders), from, source.path);
  } finally {
    await source.close();
  }
}

async function copy(source: AsyncIterable<Uint8Array>, name: string, folders: Folders): Promise<FileHandle> {
  try {
    await makeFolder(folders.state);
    return await copyToUnnamedFile(source, folders.state);
  } catch (error) {
    if (error instanceof UnreadableFile) throw error;
    throw diskError(error, `Couldn't save ${name} in ${folders.state}`, `Nothing was sent. ${stateAdvice}`);
  }
}

function throwAsUsage(error: unknown): never {
  throw error instanceof UnreadableFile ? usageError(error.message, { cause: error }) : error;
}

function openRows(text: TextFile, reading: Reading, purpose: Purpose): Rows {
  const { name, start } = text;
  if (/^\s*\[/.test(start))
    throw new UnreadableFile(
      `${name} is a JSON array. Use NDJSON instead: one call per line, without brackets or commas around the calls.`,
    );
  if (!/^\s*\{/.test(start)) return interpret(text, () => openCsv(text, reading, purpose));
  if (Object.keys(reading.columns).length > 0) throw new UnreadableFile(`${name} is NDJSON. Remove --columns: it works only with CSV.`);
  return { notes: [], rows: () => readNdjson(text.chunks()) };
}

/** Several times the size of a call. */
const maxLineLength = 1024 * 1024;

/** Reads lines, each of which is the body of one request. @throws UnreadableFile if a line is too long to hold in memory */
async function* readNdjson(chunks: AsyncIterable<string>): AsyncGenerator<Row> {
  let line = 0;
  const lines = new LineReader(({ length }) => {
    if (length > maxLineLength) throw new UnreadableFile(`Line ${line + 1} is too long for a call. Put one call on each line.`);
  });
  for await (const content of readAll(chunks, lines)) {
    line++;
    if (content.trim() === '') continue;
    const input = parseJson(content);
    yield input === undefined ? { line, path: '', reason: "This isn't valid JSON." } : { line, input };
  }
}

const columnsHint =
  `Supported columns: ${callColumns.join(', ')}, and ${variablePrefix}NAME for a variable, separated by commas, semicolons, tabs or vertical bars. ` +
  'If your column has a different name, add --columns phone=NAME.';

type Cell = { column: CallColumn } | { variable: string };
type Cells = readonly (Cell | null)[];

/** How to read the console's own export of calls. A call that's placed again needs a new request ID. */
const ownColumns = { place: { phone: 'Phone', name: 'Contact' }, cancel: { requestId: 'Request ID', phone: 'Phone' } };

/** Opens a CSV file with a header. @throws UnreadableFile */
function openCsv(file: TextFile, reading: Reading, purpose: Purpose): Rows {
  const { name } = file;
  const isHeader = (cells: string[]) =>
    findPhoneColumns(cells).length > 0 || Object.values(reading.columns).some((column) => cells.includes(column));
  const table = openTable(file, isHeader, () => true);
  if (!table.header) throw new UnreadableFile(`${name} is empty. Add a header and at least one call.`);
  const names = table.header.cells;
  if (names.some((name) => looksLikePhone(name)))
    throw new UnreadableFile(`${name} has no header. Add a first line with the names of its columns, such as phone.`);
  if (isExport(names, doNotCallHead)) throw new UnreadableFile(`${name} is a do-not-call list. The people in it must not be called.`);
  const isOwn = Object.keys(reading.columns).length === 0 && isExport(names, callsHead);
  const cells = toCells(names, isOwn ? ownColumns[purpose === 'cancel' ? 'cancel' : 'place'] : reading.columns, name);
  const ignored = names.map((header, index) => header || `column ${index + 1} (no name)`).filter((_, index) => cells[index] === null);
  return {
    notes: [...table.notes, ...(ignored.length > 0 ? [`Ignored columns: ${ignored.join(', ')}.`] : [])],
    async *rows() {
      for await (const record of readAll(file.chunks(), table.createReader())) yield toRow(record, cells);
    },
  };
}

/**
 * Interprets the column names. Ignores columns without a name, which spreadsheet programs may add at the end. With --columns, ignores all
 * columns that it doesn't name, except the one with the phone numbers.
 */
function toCells(names: string[], columns: Reading['columns'], file: string): Cells {
  const phones = Object.hasOwn(columns, 'phone') ? [] : findPhoneColumns(names);
  const isNamed = Object.keys(columns).length > 0;
  const seen = new Set<string>();
  const cells = names.map((header, index): Cell | null => {
    const mapped = Object.entries(columns).find(([, name]) => name === header)?.[0];
    const id = mapped ?? (phones.includes(index) ? 'phone' : isNamed ? undefined : toColumnName(header));
    if (id === undefined) {
      if (header === '' || isNamed) return null;
      throw new UnreadableFile(`${file} has an unknown column: "${shorten(header, 60)}". ${columnsHint}`);
    }
    if (seen.has(id)) {
      const choice = id === 'phone' ? ` Or choose one: --columns phone=NAME.` : '';
      throw new UnreadableFile(`${file} has the column ${id} twice (${shorten(header, 60)}). Delete or rename one.${choice}`);
    }
    seen.add(id);
    const column = callColumns.find((candidate) => candidate === id);
    return column ? { column } : { variable: id.slice(variablePrefix.length) };
  });
  for (const [column, header] of Object.entries(columns)) {
    if (!seen.has(column))
      throw new UnreadableFile(`${file} has no column "${header}". Its columns are: ${shorten(names.join(', '), 1_000)}.`);
  }
  if (!seen.has('phone')) throw new UnreadableFile(`${file} has no phone column in its header. ${columnsHint}`);
  return cells;
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

/** Builds a row. Omits empty cells, because most lines have a cell for each column, even if the call doesn't have that field. */
function toRow({ line, cells }: CsvRecord, header: Cells): Row {
  // Excel omits empty cells at the end of a row.
  if (cells.slice(header.length).some((cell) => cell !== ''))
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
    } else if (cell.column === 'phone' || cell.column === 'name' || cell.column === 'timeZone') contact[cell.column] = value;
    else fields[cell.column] = value;
  }
  return { line, input: { ...fields, contact, ...(hasVariables ? { variables } : {}) } };
}
