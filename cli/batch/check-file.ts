import { hash } from 'node:crypto';
import type { PlaceCall } from '#contract/calls/calls.ts';
import { limits } from '#contract/limits.ts';
import type { FieldError } from '#contract/problems.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { usageError } from '../client/errors.ts';
import type { Output, Streams } from '../terminal/output.ts';
import { createCounter, maxNotes } from './batch.ts';
import type { CallFile, Row } from './call-file.ts';
import { FirstLines, keepHeapSmall, LineSet, toFingerprint } from './long-file.ts';
import { isRecord, type Reading, toUtc, validateCall } from './reading.ts';

export type CallLine = { line: number; call: PlaceCall };
export type InvalidLine = { line: number; errors: FieldError[] };

/** The result of checking a whole file. */
export type CheckedFile = {
  /** The number of lines that can be placed. */
  good: number;
  bad: LineSet;
  /** Whether every good line has its own request ID. */
  ownRequestIds: boolean;
};

/**
 * Checks a whole file before any line is sent, and reports what it finds.
 *
 * @throws CallkeyError `usage` if it has no calls, or if lines are invalid, unless --skip-invalid is set and some lines are valid
 */
export async function checkFile(to: { output: Output; streams: Streams }, file: CallFile, skipInvalid: boolean): Promise<CheckedFile> {
  const { output } = to;
  const counter = createCounter(to.streams.stderr, 'Checking');
  const note = (text: string) => {
    counter.clear();
    output.note(text);
  };
  let duplicates = 0;
  const report = {
    line: counter.line,
    invalidLine({ line, errors }: InvalidLine, count: number) {
      if (output.forPrograms) output.result({ line, status: 'invalid', errors });
      if (count <= maxNotes)
        note(`line ${line}: ${errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join(' ')}`);
    },
    duplicateNumber(line: number, earlier: number) {
      if (++duplicates <= maxNotes) note(`line ${line}: warning: same phone number as line ${earlier}. It will be called again.`);
    },
  };
  const checked = await checkLines(file, report).finally(counter.clear);
  const { good, bad } = checked;
  if (bad.size > maxNotes) output.note(`Not shown: ${counted(bad.size - maxNotes, 'more invalid line')}. To see them all, add --json.`);
  if (duplicates > 0)
    output.note(`Warning: ${counted(duplicates, 'line')} with the same phone number as an earlier line. Each one is a separate call.`);
  if (bad.size === 0) return checked;
  const found = `${formatCount(bad.size)} of ${counted(good + bad.size, 'line')} in ${file.name} ${bad.size === 1 ? 'is' : 'are'} invalid.`;
  if (good > 0 && skipInvalid) output.note(`${found} Skipping them.`);
  else {
    const them = bad.size === 1 ? 'it' : 'them';
    const advice = good === 0 ? `Fix ${them} and run the command again.` : `Fix ${them}, or add --skip-invalid to place the others.`;
    throw usageError(`${found} Nothing was sent. ${advice}`, { code: 'invalid' });
  }
  return checked;
}

type Report = {
  invalidLine(line: InvalidLine, count: number): void;
  /** Reports a line with the same phone number as an earlier one. */
  duplicateNumber(line: number, earlier: number): void;
  line(): void;
};

/** @throws CallkeyError `usage` if the file has no calls */
export async function checkLines(file: CallFile, report: Report): Promise<CheckedFile> {
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
      report.invalidLine(checked, bad.size);
      continue;
    }
    good++;
    if (checked.call.requestId !== undefined) withRequestId++;
    const earlier = phones.add({ high: Number(checked.call.contact.phone), low: 0 }, checked.line);
    if (earlier !== undefined) report.duplicateNumber(checked.line, earlier);
  }
  if (good + bad.size === 0) throw usageError(`${file.name} contains no calls. Put one call on each line.`);
  return { good, bad, ownRequestIds: withRequestId === good };
}

/** Returns the lines that the check has found valid, except those in `placed`. */
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
