import { createHash, hash } from 'node:crypto';
import type { PlaceCall } from '#contract/calls/calls.ts';
import type { OpenFile } from '#contract/files/open-file.ts';
import { interpret, openText, type TextFile, UnreadableFile } from '#contract/files/text-file.ts';
import { limits } from '#contract/limits.ts';
import type { FieldError } from '#contract/problems.ts';
import { CallkeyError } from '../../client/errors.ts';
import { toUtc } from '../../terminal/local-time.ts';
import { keepHeapSmall } from '../heap-limit.ts';
import { openCsv } from './csv.ts';
import { FirstLines, LineSet, toFingerprint } from './line-numbers.ts';
import { readNdjson } from './ndjson.ts';
import { isRecord, type Reading, validateCall } from './reading.ts';
import type { Row } from './row.ts';
import { throwAsUsage } from './source.ts';

export type CallLine = { line: number; call: PlaceCall };
export type InvalidLine = { line: number; errors: FieldError[] };

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
};

/** @throws CallkeyError `usage` if the file can't be split into lines */
export async function openCallFile(source: OpenFile, reading: Reading, purpose: 'place' | 'cancel' = 'place'): Promise<CallFile> {
  const { name, path } = source;
  const digest = createHash('sha256');
  const text = await openText(source, (chunk) => digest.update(chunk)).catch(throwAsUsage);
  const { notes, rows } = await openRows(text, reading, purpose).catch(throwAsUsage);
  return {
    ...{ name, path, content: digest.digest('hex'), reading, notes: [...text.notes, ...notes], lines: text.lines },
    async *rows() {
      try {
        yield* rows();
      } catch (error) {
        throwAsUsage(error);
      }
    },
  };
}

async function openRows(text: TextFile, reading: Reading, purpose: 'place' | 'cancel'): Promise<ReturnType<typeof openCsv>> {
  const { name, start } = text;
  if (/^\s*\[/.test(start))
    throw new UnreadableFile(
      `${name} is a JSON array. Use NDJSON instead: one call per line, without brackets or commas around the calls.`,
    );
  if (!/^\s*\{/.test(start)) return interpret(text, () => openCsv(text, reading, purpose));
  if (Object.keys(reading.columns).length > 0) throw new UnreadableFile(`${name} is NDJSON. Remove --columns: it works only with CSV.`);
  return { notes: [], rows: () => readNdjson(text.chunks()) };
}

/** The result of checking a whole file. */
export type CheckedFile = {
  /** The number of lines that can be placed. */
  good: number;
  bad: LineSet;
  /** Whether every good line has its own request ID. */
  ownRequestIds: boolean;
};

export type CheckReport = {
  invalidLine(line: InvalidLine): void;
  /** Reports a line with the same phone number as an earlier one. */
  duplicateNumber(line: number, earlier: number): void;
  line(): void;
};

/** Checks a whole file before any line is sent. @throws CallkeyError `usage` if it has no calls */
export async function checkCalls(file: CallFile, report: CheckReport): Promise<CheckedFile> {
  const bad = new LineSet();
  const requestIds = new FirstLines(file.lines);
  const phones = new FirstLines(file.lines);
  let [good, withRequestId] = [0, 0];
  const keepSmall = keepHeapSmall();
  for await (const row of file.rows()) {
    keepSmall();
    report.line();
    const checked = checkRow(row, file.reading, requestIds);
    if ('errors' in checked) {
      bad.add(checked.line);
      report.invalidLine(checked);
      continue;
    }
    good++;
    if (checked.call.requestId !== undefined) withRequestId++;
    const earlier = phones.add({ high: Number(checked.call.contact.phone), low: 0 }, checked.line);
    if (earlier !== undefined) report.duplicateNumber(checked.line, earlier);
  }
  if (good + bad.size === 0) throw new CallkeyError('usage', `${file.name} contains no calls. Put one call on each line.`);
  return { good, bad, ownRequestIds: withRequestId === good };
}

/** Returns the lines that checkCalls has found valid, except those in `placed`. */
export async function* goodLines(file: CallFile, bad: LineSet, placed = new LineSet()): AsyncGenerator<CallLine> {
  const keepSmall = keepHeapSmall();
  for await (const row of file.rows()) {
    keepSmall();
    if (bad.has(row.line) || placed.has(row.line)) continue;
    const checked = checkRow(row, file.reading);
    if ('errors' in checked) throw new Error(`Line ${row.line} of ${file.name} was valid when it was checked, but isn't now.`);
    yield checked;
  }
}

/** @param requestIds finds duplicate request IDs */
function checkRow(row: Row, { country, zone }: Reading, requestIds?: FirstLines): CallLine | InvalidLine {
  const { line } = row;
  if ('reason' in row) return { line, errors: [{ path: row.path, message: row.reason }] };
  const inUtc = convertTimes(row.input, zone);
  if ('errors' in inUtc) return { line, errors: inUtc.errors };
  const validated = validateCall(inUtc.input, country ?? undefined);
  if (!validated.ok) return { line, errors: validated.errors };
  const call = validated.data;
  // Leaves room for a request ID, because a line that doesn't have one gets one later.
  if (Buffer.byteLength(JSON.stringify(call)) > limits.bodyBytes - limits.requestId - 20) {
    return {
      line,
      errors: [{ path: '', message: `The call is too large: the limit is ${limits.bodyBytes} bytes. Shorten its variables.` }],
    };
  }
  const earlier = call.requestId === undefined ? undefined : requestIds?.add(toFingerprint(hash('sha256', call.requestId, 'buffer')), line);
  if (earlier !== undefined) return { line, errors: [{ path: 'requestId', message: `Line ${earlier} has the same request ID.` }] };
  return { line, call };
}

/** Converts a row's local times to UTC. */
function convertTimes(input: unknown, zone: string | null): { input: unknown } | { errors: FieldError[] } {
  if (!isRecord(input)) return { input };
  let converted = input;
  for (const path of ['notBefore', 'notAfter']) {
    const text = input[path];
    if (typeof text !== 'string') continue;
    const utc = toUtc(text, zone);
    if ('reason' in utc) return { errors: [{ path, message: `${text}: ${utc.reason}` }] };
    if (utc.time !== text) converted = { ...converted, [path]: utc.time };
  }
  return { input: converted };
}
