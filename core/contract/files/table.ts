import { counted } from '../text/count.ts';
import { foldText, toPlainPhone } from '../text/text.ts';
import { CsvReader, type CsvRecord, type Reader } from './csv.ts';
import { type TextFile, UnreadableFile } from './text-file.ts';

/** The columns of the console's exports. A program that reads files recognizes them. */
export const callsHead = [
  ...['Campaign', 'Request ID', 'Contact', 'Phone', 'Outcome', 'Detail', 'Simulated', 'Key'],
  ...['Placed', 'Held until', 'Dialed', 'Ended', 'Seconds'],
];
export const doNotCallHead = ['Number', 'For', 'Reason', 'Note', 'Source', 'Added by', 'Added', 'Ends'];

export function isExport(header: readonly string[], head: readonly string[]): boolean {
  return head.every((name) => header.includes(name));
}

/** @property header null if the file has none @property sample the first rows below the header @property notes about what was skipped */
export type Table = { header: CsvRecord | null; sample: CsvRecord[]; notes: string[]; createReader(): Reader<CsvRecord> };

/** How many rows at the beginning of a file can contain the header, because programs write titles, dates and filters above it. */
const scannedRows = 20;
const delimiters = [',', ';', '\t', '|'];
/** Excel's first line. */
const sepLine = /^sep=([^"\r\n])[\r\n]/i;

type Layout = { delimiter: string; header: CsvRecord | null; rows: CsvRecord[]; failure: unknown; score: number };

/**
 * Opens a CSV file as programs save it, with commas, semicolons, tabs or vertical bars, and possibly with lines above the header.
 *
 * @param isHeader recognizes the header by its names
 * @param orFirst what to do if no row is recognized: whether the first row is the header
 * @throws UnreadableFile if the beginning can't be read
 */
export function openTable(file: TextFile, isHeader: (cells: string[]) => boolean, orFirst: (first: CsvRecord) => boolean): Table {
  const { name, start } = file;
  const [, declared] = sepLine.exec(start) ?? [];
  const { delimiter, header: known, rows } = chooseLayout(file, declared === undefined ? delimiters : [declared], isHeader);
  const [first] = rows;
  if (!first && !file.isWhole) throw new UnreadableFile(`${name}: the first line is too long. Use a CSV file.`);
  const header = known ?? (first && orFirst(first) ? first : null);
  const skipped = header ? rows.indexOf(header) : 0;
  const isBelow = (record: CsvRecord) => record.line > (header?.line ?? 0) && isData(record, name);
  return {
    header,
    sample: rows.slice(header ? skipped + 1 : 0),
    notes: skipped > 0 ? [`Skipped ${counted(skipped, 'line')} above the header.`] : [],
    createReader() {
      const reader = new CsvReader(name, delimiter);
      return { push: (chunk) => reader.push(chunk).filter(isBelow), end: () => reader.end().filter(isBelow) };
    },
  };
}

/** Chooses the delimiter with which the header has the most cells. @throws UnreadableFile if no delimiter fits the first row */
function chooseLayout(file: TextFile, candidates: readonly string[], isHeader: (cells: string[]) => boolean): Layout {
  const layouts = candidates.map((delimiter): Layout => {
    const { rows, failure } = readStart(file, delimiter);
    const data = rows.findIndex(({ cells }) => cells.some((cell) => looksLikePhone(cell, minDigits)));
    const header = rows.slice(0, data === -1 ? rows.length : data).find(({ cells }) => isHeader(cells)) ?? null;
    const total = rows.reduce((sum, { cells }) => sum + cells.length, 0);
    const score = (header ? 1e9 : 0) + ((header ?? rows[0])?.cells.length ?? 0) * 1e5 + total;
    return { delimiter, header, rows, failure, score };
  });
  const best = layouts.reduce((one, other) => (other.score > one.score ? other : one));
  if (best.rows.length === 0 && best.failure !== undefined) throw best.failure;
  return best;
}

/** Reads the first rows, up to one that can't be read with this delimiter. */
function readStart({ name, start, isWhole }: TextFile, delimiter: string): Pick<Layout, 'rows' | 'failure'> {
  const reader = new CsvReader(name, delimiter);
  const rows: CsvRecord[] = [];
  const add = (records: CsvRecord[]) => rows.push(...records.filter((record) => isData(record, name)));
  try {
    for (const line of start.split(/(?<=\n|\r(?!\n))/)) if (rows.length < scannedRows) add(reader.push(line));
    if (isWhole && rows.length < scannedRows) add(reader.end());
    return { rows, failure: undefined };
  } catch (failure) {
    return { rows, failure };
  }
}

/** @throws UnreadableFile at the last line of an export that ended early */
function isData({ line, cells, text }: CsvRecord, name: string): boolean {
  if (cells.every((cell) => cell.trim() === '') || (line === 1 && sepLine.test(text))) return false;
  if (!cells[0]?.startsWith('# ')) return true;
  const mark = cells.filter((cell) => cell !== '').join(', ');
  if (/^# INCOMPLETE, \d+ rows/.test(mark))
    throw new UnreadableFile(`${name} is an export that ended early (line ${line}). Export it again.`);
  return !/^# complete, \d+ rows$/.test(mark);
}

const phoneWord =
  'phone|telephone|tel|mobile|cell|cellular|msisdn|gsm|telefon|telefono|telefone|telefoon|mobil|mobiel|mobiltelefon|mobilfunk|handy|rufnummer|' +
  'festnetz|portable|movil|telemovel|celular|cellulare|puhelin|komorka|telefonu|telefonni|телефон|телефона|电话|电话号码|手机|手机号|手机号码|電話|電話番号';
const phoneName = new RegExp(
  `^(?:person|contact|customer|kunde|work|home|business|office|primary|main|other|private|privat|geschaftlich|n[o°]?de|num(?:e|er|ero)?(?:de|di|do)?|номер)?(?:${phoneWord})+` +
    '(?:number|num|numero|nummer|no|nr|cislo|1|value|work|home|mobile|privat|geschaftlich)*$',
);

/** Finds columns that have phone numbers by their names, as people and programs call them. */
export function findPhoneColumns(header: readonly string[]): number[] {
  const folded = header.map((name) => foldText(name).replace(/[^\p{L}\p{N}]/gu, ''));
  for (const form of [/^phone$/, phoneName, /^(?:contact)?(?:number|nummer|numero)$/]) {
    const columns = folded.flatMap((name, index) => (form.test(name) ? [index] : []));
    if (columns.length > 0) return columns;
  }
  return [];
}

/** The shortest numbers that countries have, without an area code. */
const minDigits = 7;
/** Digits within a text, such as a note, but not those of an ID or a link. */
const digitsInText = /(?<![\p{L}\p{N}_./=@-])\(?\d[\d\s()./-]*\d(?![\p{L}\p{N}_@])/gu;

/** Whether a cell could have a phone number of some country, even within other text. */
export function mayHavePhone(cell: string): boolean {
  return looksLikePhone(cell) || [...toPlainPhone(cell).matchAll(digitsInText)].some(([digits]) => looksLikePhone(digits, minDigits));
}

/** Whether a cell seems to be a phone number, or has one with its country code. @param atLeast how many digits a number without a prefix has */
export function looksLikePhone(cell: string, atLeast = 9): boolean {
  const text = toPlainPhone(cell);
  if (/(?:\+|(?<!\d)00)[\s()]*[1-9](?:[\s()./-]*\d){6,14}(?!\d)/.test(text)) return true;
  if (!/^\(?\d[\d\s()./-]*$/.test(text) || otherNumber.test(text)) return false;
  const { length } = text.replace(/\D/g, '');
  return length >= (/^\(?0/.test(text) ? minDigits : atLeast) && length <= 17;
}

/** A date, a decimal or an IP address. */
const otherNumber = /^(?:\d{4}[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]\d{2,4}|\d+\.\d{1,2}|\d{1,3}(?:\.\d{1,3}){3})(?:\s|$)/;

const otherName =
  /(?:^|[^a-z])(?:ids?|uuid|keys?|ref|reference|code|plz|zip|postcode|postal|cep|date|datum|created|updated|modified|time|timestamp|amount|betrag|price|preis|total|iban|account|konto|order|invoice|rechnung|bestellung|ean|sku|vat|ust|tax|cpf|cnpj|siret|siren|nif|ssn)(?:[^a-z]|$)|(?:kunden|bestell|rechnungs|auftrags|konto|customer|order|invoice|account)[-_ ]?(?:n(?:umme)?r|no|number)/;

/** Whether a column's name says that its digits aren't phone numbers. */
export function isOtherNumber(name: string): boolean {
  return otherName.test(foldText(name)) || /(?:^|[a-z])I[Dd]$/.test(name);
}
