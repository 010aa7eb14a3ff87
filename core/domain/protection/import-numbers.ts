import type { Actor, OwningScope } from '../model.ts';
import type { Ports } from '../ports.ts';
import { addParsed } from './do-not-call.ts';
import { parsePhone } from './numbers.ts';

export type WrongLine = { line: number; message: string };
export type ImportedNumbers = { added: number; known: number; wrong: WrongLine[]; wrongLines: number };

/** The number of entries in one transaction. Calls can be placed between two of them. */
const addedAtOnce = 1_000;
/** The number of wrong lines that are described. */
const mostDescribed = 10_000;

/**
 * Adds the numbers of a file to a list: one on each line, in its first column. Each thousand is added at once and counts immediately. If
 * the import is interrupted, repeat it: the numbers that were already added are known then.
 *
 * @param given.country for numbers without a country code
 */
export async function importNumbers(
  ports: Ports,
  actor: Actor,
  given: { owner: OwningScope; country: string | undefined; lines: AsyncIterable<string> },
): Promise<ImportedNumbers> {
  const { owner, country, lines } = given;
  const entry = { owner, reason: 'imported', note: null, source: 'admin', endsAt: null } as const;
  const total: ImportedNumbers = { added: 0, known: 0, wrong: [], wrongLines: 0 };
  let phones: string[] = [];
  let isFirst = true;

  async function flush(): Promise<void> {
    if (phones.length === 0) return;
    const { added } = await addParsed(ports, actor, entry, phones, isFirst ? 'do-not-call.imported' : null);
    isFirst = false;
    total.added += added;
    total.known += phones.length - added;
    phones = [];
  }

  let number = 0;
  for await (const line of lines) {
    number++;
    const text = firstCell(line);
    if (text === '') continue;
    const phone = parsePhone(text, country);
    if (phone !== null) phones.push(phone);
    // The first line may have the names of the columns.
    else if (number > 1 || /\d/.test(text)) noteWrong(total, number);
    if (phones.length === addedAtOnce) await flush();
  }
  await flush();
  return total;
}

function noteWrong(total: ImportedNumbers, line: number): void {
  total.wrongLines++;
  // The text itself isn't repeated, because it may be somebody's number.
  if (total.wrong.length < mostDescribed) total.wrong.push({ line, message: 'This is not a valid phone number.' });
}

/** Returns the first cell of a line, without quotes, a byte order mark, and the apostrophe that protects spreadsheets. */
function firstCell(line: string): string {
  const cell = /^\uFEFF?\s*(?:"((?:[^"]|"")*)"|([^,;\t]*))/.exec(line);
  return (cell?.[1] ?? cell?.[2] ?? '').trim().replace(/^'/, '');
}
