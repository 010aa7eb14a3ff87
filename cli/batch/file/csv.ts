import { type CsvRecord, readAll } from '#contract/files/csv.ts';
import { callsHead, doNotCallHead, findPhoneColumns, isExport, looksLikePhone, openTable } from '#contract/files/table.ts';
import { type TextFile, UnreadableFile } from '#contract/files/text-file.ts';
import { counted } from '#contract/text/count.ts';
import { type CallColumn, callColumns, type Reading, variablePrefix } from './reading.ts';
import type { Row } from './row.ts';

const columnsHint =
  `Supported columns: ${callColumns.join(', ')}, and ${variablePrefix}NAME for a variable, separated by commas, semicolons, tabs or vertical bars. ` +
  'If your column has a different name, add --columns phone=NAME.';

type Cell = { column: CallColumn } | { variable: string };
type Cells = readonly (Cell | null)[];

/** How to read the console's own export of calls. A call that's placed again needs a new request ID. */
const ownColumns = { place: { phone: 'Phone', name: 'Contact' }, cancel: { requestId: 'Request ID', phone: 'Phone' } };

/** Opens a CSV file with a header. @throws UnreadableFile */
export function openCsv(file: TextFile, reading: Reading, purpose: 'place' | 'cancel'): { notes: string[]; rows(): AsyncGenerator<Row> } {
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
  const cells = toCells(names, isOwn ? ownColumns[purpose] : reading.columns, name);
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
