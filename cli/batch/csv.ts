import { CsvError, parse } from 'csv-parse/sync';
import { CallkeyError } from '../client/errors.ts';
import type { Row } from './row.ts';

const columns = ['phone', 'name', 'timeZone', 'requestId', 'notBefore', 'notAfter'] as const;
type Column = (typeof columns)[number];
const variablePrefix = 'var.';
const known = `The columns are: ${columns.join(', ')}, and ${variablePrefix}NAME for a variable.`;

type Cell = { column: Column } | { variable: string };
type Line = { line: number; cells: string[] };

/** The rows of a CSV file (RFC 4180) with a header. @throws CallkeyError `usage` */
export function readCsv(text: string, name: string): Row[] {
  const { lines, broken } = split(text);
  const [header, ...rest] = lines;
  if (!header) {
    throw new CallkeyError('usage', broken ? `Could not read ${name}: ${broken.reason}` : `${name} is empty. Give it a header and calls.`);
  }
  const cells = readHeader(header.cells, name);
  return [...rest.map((line) => rowOf(line, cells)), ...(broken ? [broken] : [])];
}

/** Stops at the first misplaced quote: after it, nobody knows which line ends are part of a cell. */
function split(text: string): { lines: Line[]; broken?: { line: number; reason: string } } {
  const lines: Line[] = [];
  try {
    parse(text, {
      bom: true,
      trim: true,
      skip_empty_lines: true,
      relax_column_count: true,
      record_delimiter: ['\r\n', '\n', '\r'],
      on_record: (cells: string[], { lines: lastLine }) => {
        lines.push({ line: lastLine - lineEnds(cells.join(' ')), cells });
        return null;
      },
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = Number(error['lines']);
    return {
      lines,
      broken: {
        line,
        reason: `A quote is out of place at or before this line (${error.message}). Correct it: the lines after it could not be read.`,
      },
    };
  }
  return { lines };
}

/** A cell in quotes may hold several lines, and the parser reports the last. */
function lineEnds(text: string): number {
  return text.match(/\r\n|\n|\r/g)?.length ?? 0;
}

function readHeader(names: string[], file: string): Cell[] {
  const cells = names.map((name) => cellOf(name, names, file));
  const seen = new Set<string>();
  for (const cell of cells) {
    const id = JSON.stringify(cell);
    if (seen.has(id))
      throw new CallkeyError(
        'usage',
        `${file} has the column ${'column' in cell ? cell.column : variablePrefix + cell.variable} twice. Delete or rename one.`,
      );
    seen.add(id);
  }
  if (!cells.some((cell) => 'column' in cell && cell.column === 'phone'))
    throw badHeader(`${file} has no column phone in its first line.`, names);
  return cells;
}

function cellOf(name: string, names: string[], file: string): Cell {
  if (name.startsWith(variablePrefix)) return { variable: name.slice(variablePrefix.length) };
  // "Time zone", time_zone and timeZone are the same column.
  const folded = name.toLowerCase().replace(/[ _-]/g, '');
  const column = columns.find((known) => known.toLowerCase() === folded);
  if (column === undefined) throw badHeader(`${file} has an unknown column: "${name}".`, names);
  return { column };
}

function badHeader(what: string, names: string[]): CallkeyError {
  const hasOtherSeparator = names.length === 1 && /[;\t]/.test(names[0] ?? '');
  return new CallkeyError('usage', `${what} ${hasOtherSeparator ? 'Separate the columns by commas.' : known}`);
}

/** Leaves out empty cells: a column has a cell on every line, also where the call has no such field. */
function rowOf({ line, cells }: Line, header: Cell[]): Row {
  if (cells.length !== header.length) return { line, reason: `This line has ${cells.length} cells, the header has ${header.length}.` };
  const filled = header.flatMap((cell, index) => (cells[index] ? [{ cell, value: cells[index] }] : []));
  const fields = new Map(filled.flatMap(({ cell, value }) => ('column' in cell ? [[cell.column, value] as const] : [])));
  const variables = filled.flatMap(({ cell, value }) => ('variable' in cell ? [[cell.variable, value] as const] : []));
  const pick = (...names: Column[]) => Object.fromEntries(names.flatMap((name) => (fields.has(name) ? [[name, fields.get(name)]] : [])));
  return {
    line,
    input: {
      ...pick('requestId', 'notBefore', 'notAfter'),
      contact: pick('phone', 'name', 'timeZone'),
      ...(variables.length === 0 ? {} : { variables: Object.fromEntries(variables) }),
    },
  };
}
