import type { CsvRecord, Reader } from './csv.ts';
import { doNotCallHead, findPhoneColumns, isExport, isOtherNumber, looksLikePhone, mayHavePhone, openTable, type Table } from './table.ts';
import { interpret, type TextFile, UnreadableFile } from './text-file.ts';

export class UnclearColumn extends UnreadableFile {
  readonly names: readonly string[];

  constructor(message: string, names: readonly string[]) {
    super(message);
    this.names = names;
  }
}

/** @property numbers as they're written @property question why it isn't clear which numbers to read; null if it is */
export type ListLine = CsvRecord & { numbers: string[]; question: string | null };

/**
 * @property names the names of all columns; empty if the file has no header
 * @property columns the names of the columns that numbers are read from, or their positions, starting at 1
 * @property head the lines to write above some of this list's lines, so that they can be read again
 */
export type PhoneList = { names: string[]; columns: string[]; head: string; notes: string[]; createReader(): Reader<ListLine> };

/**
 * Opens a list of phone numbers that must not lose any. The numbers are in the columns that the caller names, or else in the one whose
 * header says so. A line that has a number in another column is a question to the caller.
 *
 * @param columns names, or positions if the file has no header
 * @param hint how to name a column
 * @throws UnreadableFile if the file isn't a table; UnclearColumn if it's unclear which column has the numbers
 */
export function openPhoneList(file: TextFile, columns: readonly string[], hint: string): PhoneList {
  return interpret(file, () => toPhoneList(file, columns, hint));
}

function toPhoneList(file: TextFile, columns: readonly string[], hint: string): PhoneList {
  const { name, start } = file;
  if (/^\s*[[{]/.test(start))
    throw new UnreadableFile(`${name} is JSON. Use CSV: one phone number on each line, or a table with a header.`);
  const isHeader = (cells: string[]) =>
    columns.length > 0 ? columns.some((column) => cells.includes(column)) : findPhoneColumns(cells).length > 0;
  // A title may have digits, but then it can't be told apart from a number that's misspelled.
  const table = openTable(file, isHeader, ({ cells }) => !cells.some((cell) => /\p{Nd}/u.test(cell)));
  const names = table.header?.cells ?? [];
  const positions = choosePositions(file, table, columns, hint);
  const nameOf = (position: number) => names[position] || String(position + 1);
  const chosen = positions.map(nameOf);
  const ignored = columns.length > 0 ? names.filter((each, position) => each !== '' && !positions.includes(position)) : [];
  const isNumber = columns.length > 0 || isExport(names, doNotCallHead) ? () => false : numberFinder(names);
  const toLine = (record: CsvRecord): ListLine => {
    const { cells } = record;
    const numbers = positions.flatMap((position) => cells[position]?.trim() || []);
    const other = cells.findIndex((cell, position) => !positions.includes(position) && isNumber(cell, position));
    const question = other === -1 ? null : `There's another phone number in column ${nameOf(other)}: ${cells[other]}`;
    return { ...record, numbers, question };
  };
  return {
    ...{ names, columns: chosen },
    head: `${/^sep=.[\r\n]+/i.exec(start)?.[0] ?? ''}${table.header?.text ?? ''}`,
    notes: [...file.notes, ...table.notes, ...(ignored.length > 0 ? [`Ignored columns: ${ignored.join(', ')}.`] : [])],
    createReader() {
      const reader = table.createReader();
      return { push: (chunk) => reader.push(chunk).map(toLine), end: () => reader.end().map(toLine) };
    },
  };
}

function choosePositions({ name }: TextFile, { header, sample }: Table, columns: readonly string[], hint: string): number[] {
  const names = header?.cells ?? [];
  const width = Math.max(names.length, ...sample.map(({ cells }) => cells.length));
  const listed = names.filter((each) => each !== '').join(', ');
  const known = listed === '' ? 'It has no header.' : `Its columns are: ${listed.length > 1_000 ? `${listed.slice(0, 1_000)}…` : listed}.`;
  if (columns.length > 0) {
    return columns.flatMap((column) => {
      const matches = names.flatMap((each, position) => (each === column ? [position] : []));
      if (matches.length > 0) return matches;
      if (/^[1-9]\d{0,3}$/.test(column) && Number(column) <= width) return [Number(column) - 1];
      throw new UnreadableFile(`${name} has no column "${column}". ${known}`);
    });
  }
  const [position] = findPhoneColumns(names);
  if (position !== undefined) return [position];
  if (names.filter((each) => each !== '').length > 1)
    throw new UnclearColumn(`${name} has no column that's named like one for phone numbers. ${known} ${hint}`, names);
  return [Math.max(sample[0]?.cells.findIndex((cell) => looksLikePhone(cell)) ?? 0, 0)];
}

/** Finds phone numbers in the columns that aren't read. In columns for other numbers, it finds only those with `+`. */
function numberFinder(names: readonly string[]): (cell: string, position: number) => boolean {
  const forPhones = new Set(findPhoneColumns(names));
  const forOthers = new Set(names.flatMap((name, position) => (isOtherNumber(name) ? [position] : [])));
  return (cell, position) => {
    if (!/\p{Nd}/u.test(cell)) return false;
    if (forPhones.has(position)) return true;
    return forOthers.has(position) ? cell.includes('+') && looksLikePhone(cell) : mayHavePhone(cell);
  };
}
