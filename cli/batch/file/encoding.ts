import { createHash } from 'node:crypto';
import { CallkeyError } from '../../client/errors.ts';
import type { Source } from './source.ts';

/** Named as in TextDecoder. Spreadsheet programs use all four encodings. */
type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252';

/** The first bytes of spreadsheet programs' own formats: .xlsx and .ods, .xls. */
const spreadsheetMarks = ['PK\x03\x04', '\xd0\xcf\x11\xe0'];

/** UTF-32 has a byte order mark, or zeros in three out of four bytes. */
const utf32 = /^(?:\xff\xfe\0\0|\0\0\xfe\xff|[^\0]\0\0\0|\0\0\0[^\0])/;

export type Examined = {
  /** SHA-256 of the file, in hexadecimal. */
  content: string;
  encoding: Encoding;
  /** The text at the start of the file. */
  start: string;
  /** An upper bound on the number of lines. */
  lines: number;
};

/** Reads the whole source once. @throws CallkeyError `usage` if it's in a spreadsheet program's own format */
export async function examine(source: Source): Promise<Examined> {
  const digest = createHash('sha256');
  const utf8 = utf8Check();
  let start = Buffer.alloc(0);
  let lines = 1;
  for await (const chunk of source.chunks()) {
    if (start.length === 0) start = Buffer.from(chunk);
    digest.update(chunk);
    lines += countLineEnds(chunk);
    utf8.add(chunk);
  }
  if (spreadsheetMarks.includes(start.subarray(0, 4).toString('latin1'))) throw spreadsheetFileError(source.name);
  if (utf32.test(start.toString('latin1', 0, 4))) throw unsupportedEncodingError(source.name);
  const encoding = detectUtf16(start) ?? (utf8.isWhole() ? 'utf-8' : 'windows-1252');
  if (encoding === 'windows-1252' && start.includes(0)) throw notTextError(source.name);
  if (encoding === 'windows-1252' && utf8.isPartly()) throw mixedEncodingError(source.name);
  return { content: digest.digest('hex'), encoding, start: new TextDecoder(encoding).decode(start, { stream: true }), lines };
}

/** Decodes a source, and drops its byte order mark. */
export async function* decodeText(source: Source, encoding: Encoding): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  for await (const chunk of source.chunks()) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}

/** Counts CR LF once, except in UTF-16 or across two chunks. */
function countLineEnds(chunk: Buffer): number {
  let [count, before] = [0, 0];
  for (const byte of chunk) {
    if (byte === 13 || (byte === 10 && before !== 13)) count++;
    before = byte;
  }
  return count;
}

function utf8Check() {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let isRight = true;
  let hasLetters = false;
  const attempt = (decode: () => unknown) => {
    try {
      if (isRight) decode();
    } catch {
      isRight = false;
    }
  };
  return {
    add(chunk: Buffer): void {
      attempt(() => decoder.decode(chunk, { stream: true }));
      hasLetters ||= /\xc3[\x80-\xbf]/.test(chunk.toString('latin1'));
    },
    /** Whether at least one letter is in UTF-8: the bytes of é in UTF-8, for example, would be Ã© in Latin-1. */
    isPartly: () => hasLetters,
    isWhole(): boolean {
      attempt(() => decoder.decode());
      return isRight;
    },
  };
}

/** Detects UTF-16 by its byte order mark, or by zeros in every other byte if the text starts with Latin letters or digits. */
function detectUtf16(start: Buffer): Encoding | undefined {
  const [first, second] = start;
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return 'utf-16le';
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0 && second !== undefined)) return 'utf-16be';
  return undefined;
}

function spreadsheetFileError(name: string): CallkeyError {
  return new CallkeyError('usage', `${name} is a spreadsheet file. Open it in the spreadsheet program and save it as CSV ("CSV UTF-8").`);
}

function notTextError(name: string): CallkeyError {
  return new CallkeyError('usage', `${name} isn't a text file. Use an uncompressed CSV or NDJSON file.`);
}

function unsupportedEncodingError(name: string): CallkeyError {
  return new CallkeyError('usage', `${name} is UTF-32. Save it as UTF-8.`);
}

function mixedEncodingError(name: string): CallkeyError {
  return new CallkeyError('usage', `${name} mixes UTF-8 with another encoding. Save it as UTF-8 (in spreadsheets: "CSV UTF-8").`);
}
