import { type PlaceCall, placeCallSchema } from '#contract/calls.ts';
import { limits } from '#contract/limits.ts';
import type { FieldError } from '#contract/problems.ts';
import { CallkeyError } from '../client/errors.ts';
import { fieldErrors } from '../field-errors.ts';
import { readCsv } from './csv.ts';
import { readNdjson } from './ndjson.ts';

/** What a line says, before it is checked: a record, or why there is none. */
export type Row = { line: number; input: unknown } | { line: number; reason: string };
export type CallLine = { line: number; call: PlaceCall };
export type BadLine = { line: number; errors: FieldError[] };
export type CallFile = { good: CallLine[]; bad: BadLine[] };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Checks a whole file, before anything of it is sent.
 *
 * @throws Failure `usage` where it cannot be told line from line
 */
export async function readCallFile(bytes: Buffer, name: string): Promise<CallFile> {
  const text = decode(bytes, name);
  const rows = /^\s*\{/.test(text) ? readNdjson(text) : await readCsv(text, name);
  if (rows.length === 0) throw new CallkeyError('usage', `${name} has no calls in it.`);
  const file: CallFile = { good: [], bad: [] };
  const linesById = new Map<string, number>();
  for (const row of rows) {
    const checked = checkRow(row, linesById);
    if ('call' in checked) file.good.push(checked);
    else file.bad.push(checked);
  }
  return file;
}

function checkRow(row: Row, linesById: Map<string, number>): CallLine | BadLine {
  const { line } = row;
  if ('reason' in row) return { line, errors: [{ path: '', message: row.reason }] };
  const parsed = placeCallSchema.safeParse(row.input);
  if (!parsed.success) return { line, errors: fieldErrors(parsed.error) };
  const call = parsed.data;
  // The request id that the line is given, if it has none, takes less than the longest there is.
  if (Buffer.byteLength(JSON.stringify(call)) > limits.bodyBytes - limits.requestId - 20) {
    return { line, errors: [{ path: '', message: `Give less: a call may have ${limits.bodyBytes} bytes.` }] };
  }
  if (call.requestId === undefined) return { line, call };
  const earlier = linesById.get(call.requestId);
  if (earlier !== undefined) return { line, errors: [{ path: 'requestId', message: `Line ${earlier} has the same request id.` }] };
  linesById.set(call.requestId, line);
  return { line, call };
}

function decode(bytes: Buffer, name: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new CallkeyError('usage', `${name} is not UTF-8. Save it as UTF-8 (spreadsheets: "CSV UTF-8").`);
  }
}
