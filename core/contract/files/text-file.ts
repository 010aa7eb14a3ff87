/** Why a whole file can't be read, in words about the file. */
export class UnreadableFile extends Error {
  override readonly name: string = 'UnreadableFile';
}

/** A file that can be read several times. @property name the name for messages */
export type ByteSource = { name: string; chunks(): AsyncIterable<Uint8Array> };

/** Named as in TextDecoder. Spreadsheet programs use all four encodings. */
type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252';

/**
 * @property start the text at the beginning
 * @property isWhole whether that's all of it
 * @property lines an upper bound on the number of lines
 */
export type TextFile = {
  name: string;
  start: string;
  isWhole: boolean;
  lines: number;
  notes: string[];
  chunks(): AsyncIterable<string>;
};

const asCsv = 'save it as CSV ("CSV UTF-8")';
const spreadsheet = `is a spreadsheet file or an archive. Open it in a spreadsheet program and ${asCsv}`;
const notText = "isn't a text file. Use an uncompressed CSV file";
/** How other kinds of files begin: their bytes as Latin-1, or text after spaces and a byte order mark. */
const otherFormats: readonly [start: string, what: string][] = [
  ...['PK\x03', 'PK\x05', '\xd0\xcf\x11\xe0'].map((start): [string, string] => [start, spreadsheet]),
  ...['\x1f\x8b', '7z\xbc\xaf', 'Rar!', '\xfd7zXZ', '\x28\xb5\x2f\xfd', '\x89PNG', '\xff\xd8\xff'].map((start): [string, string] => [
    start,
    notText,
  ]),
  ['%PDF', 'is a PDF. Open the original in a spreadsheet program and save it as CSV'],
  ['{\\RTF', 'is a formatted text document. Save it as plain text or CSV'],
  ['<', `is HTML or XML, even if its name says otherwise. Open it in a spreadsheet program and ${asCsv}`],
  ['BEGIN:VCARD', 'has contacts in the vCard format. Export them as CSV'],
];
/** UTF-32 has a byte order mark, or zeros in three out of four bytes. */
const utf32 = /^(?:\xff\xfe\0\0|\0\0\xfe\xff|[^\0]\0\0\0|\0\0\0[^\0])/;

/**
 * Reads a whole file once to find out how its text is encoded.
 *
 * @param onChunk receives the file's bytes
 * @throws UnreadableFile if it isn't text
 */
export async function openText(source: ByteSource, onChunk?: (chunk: Uint8Array) => void): Promise<TextFile> {
  const { name } = source;
  const strict = new TextDecoder('utf-8', { fatal: true });
  let [isUtf8, hasUtf8Letters, lines, size] = [true, false, 1, 0];
  let start = new Uint8Array();
  const attempt = (decodeNext: () => unknown) => {
    try {
      if (isUtf8) decodeNext();
    } catch {
      isUtf8 = false;
    }
  };
  for await (const chunk of source.chunks()) {
    if (start.length === 0) start = new Uint8Array(chunk);
    size += chunk.length;
    onChunk?.(chunk);
    attempt(() => strict.decode(chunk, { stream: true }));
    let before = 0;
    for (const byte of chunk) {
      // Counts CR LF once, except in UTF-16 or across two chunks.
      if (byte === 13 || (byte === 10 && before !== 13)) lines++;
      // The bytes of é in UTF-8, for example, would be Ã© in Latin-1.
      else if (before === 0xc3 && byte >= 0x80 && byte < 0xc0) hasUtf8Letters = true;
      before = byte;
    }
  }
  attempt(() => strict.decode());
  const bytes = String.fromCharCode(...start.subarray(0, 100));
  if (utf32.test(bytes)) throw new UnreadableFile(`${name} is UTF-32. Save it as UTF-8.`);
  const text = bytes.replace(/^(?:\xef\xbb\xbf|\s)+/, '').toUpperCase();
  const other = otherFormats.find(([form]) => bytes.startsWith(form) || text.startsWith(form));
  if (other) throw new UnreadableFile(`${name} ${other[1]}.`);
  const encoding = detectUtf16(start) ?? (isUtf8 ? 'utf-8' : 'windows-1252');
  if (encoding === 'windows-1252' && start.includes(0)) throw new UnreadableFile(`${name} ${notText}.`);
  if (encoding === 'windows-1252' && hasUtf8Letters)
    throw new UnreadableFile(`${name} mixes UTF-8 with another encoding. Save it as UTF-8 (in spreadsheets: "CSV UTF-8").`);
  const latin = `${name} isn't UTF-8, so it's read as Latin-1. If names look wrong, save it as UTF-8 (in spreadsheets: "CSV UTF-8").`;
  return {
    ...{ name, lines, isWhole: size === start.length, notes: encoding === 'windows-1252' ? [latin] : [] },
    start: dropMarks(new TextDecoder(encoding).decode(start, { stream: true })),
    chunks: () => decode(source, encoding),
  };
}

/** Interprets a file's text. If that fails, the error says how the text was decoded, because names in another encoding aren't recognized. */
export function interpret<T>({ notes }: TextFile, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof UnreadableFile) error.message = [error.message, ...notes].join(' ');
    throw error;
  }
}

export function toTextFile(name: string, text: string): TextFile {
  return {
    ...{ name, start: text, isWhole: true, lines: 0, notes: [] },
    async *chunks() {
      yield text;
    },
  };
}

async function* decode(source: ByteSource, encoding: Encoding): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  let isStart = true;
  for await (const chunk of source.chunks()) {
    const text = decoder.decode(chunk, { stream: true });
    yield isStart ? dropMarks(text) : text;
    isStart = false;
  }
  yield decoder.decode();
}

/** Drops byte order marks. Programs that join or convert files may write several. */
function dropMarks(text: string): string {
  return text.replace(/^\uFEFF+/, '');
}

/** Detects UTF-16 by its byte order mark, or by zeros in every other byte: digits, delimiters and line ends have them in every script. */
export function detectUtf16(start: Uint8Array): Encoding | undefined {
  if (start[0] === 0xff && start[1] === 0xfe) return 'utf-16le';
  if (start[0] === 0xfe && start[1] === 0xff) return 'utf-16be';
  const sample = start.subarray(0, 4_096);
  const even = sample.filter((byte, index) => byte === 0 && index % 2 === 0).length;
  const odd = sample.filter((byte, index) => byte === 0 && index % 2 === 1).length;
  if (odd > sample.length / 8 && odd > 10 * even) return 'utf-16le';
  return even > sample.length / 8 && even > 10 * odd ? 'utf-16be' : undefined;
}
