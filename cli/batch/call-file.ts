import { type PlaceCall, placeCallSchema } from '#contract/calls.ts';
import { limits } from '#contract/limits.ts';
import type { FieldError } from '#contract/problems.ts';
import { validate } from '#contract/validate.ts';
import { CallkeyError } from '../client/errors.ts';
import { readCsv } from './csv.ts';
import { readNdjson } from './ndjson.ts';
import type { Row } from './row.ts';

export type CallLine = { line: number; call: PlaceCall };
export type BadLine = { line: number; errors: FieldError[] };
export type CallFile = { good: CallLine[]; bad: BadLine[] };

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Checks a whole file before any line of it is sent.
 *
 * @throws CallkeyError `usage` where the file cannot be split into lines
 */
export function readCallFile(bytes: Buffer, name: string): CallFile {
  const text = decode(bytes, name);
  const rows = /^\s*\{/.test(text) ? readNdjson(text) : readCsv(text, name);
  if (rows.length === 0) throw new CallkeyError('usage', `${name} has no calls in it. Put one call on each line.`);
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
  const validated = validate(placeCallSchema, row.input);
  if (!validated.ok) return { line, errors: validated.errors };
  const call = validated.data;
  // Leaves room for the request id that a line without one gets.
  if (Buffer.byteLength(JSON.stringify(call)) > limits.bodyBytes - limits.requestId - 20) {
    return {
      line,
      errors: [{ path: '', message: `The call is too large. Shorten its variables: a call may have ${limits.bodyBytes} bytes.` }],
    };
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
