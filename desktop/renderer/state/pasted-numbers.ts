import { openPhoneList, type PhoneList, UnclearColumn } from '#contract/files/phone-list.ts';
import { findPhoneColumns } from '#contract/files/table.ts';
import { openText, toTextFile, UnreadableFile } from '#contract/files/text-file.ts';
import { maxAddedNumbers } from '#contract/protection/do-not-call.ts';
import type { AddedNumbersView } from '#contract/protection/protection.ts';
import { counted } from '#contract/text/count.ts';
import { type Failure, type Result, refusal } from '../../ipc.ts';
import { shorten } from './format.ts';

/** A number as it's written. */
type WrittenNumber = { line: number; text: string };
type Problem = { line: number; message: string };
/** @property skipped lines without a number, which can only be a header or an empty cell */
type WrittenNumbers = { numbers: WrittenNumber[]; problems: Problem[]; skipped: WrittenNumber[] };

/**
 * Returns everything in a pasted text that could be a phone number: each part with a digit between line breaks, commas, semicolons and tabs.
 * A line without any is a problem, unless it's the first one, which may be a header.
 * If the text is a table whose header names the column with the numbers, returns only those, and the lines with others as problems.
 */
export function readNumbers(pasted: string): WrittenNumbers {
  const text = pasted.replace(/^\uFEFF+/, '');
  const list = openTable(text);
  if (list) return readList(list, text);
  const lines = text.split(/\r\n|\n|\r/).map((content, index) => ({
    line: index + 1,
    content: content.trim(),
    numbers: content
      .split(/[,;\t]/)
      .map((part) => part.replace(/^[\s="']+|[\s"]+$/g, ''))
      .filter((part) => /\p{Nd}/u.test(part)),
  }));
  const first = lines.find(({ content }) => content !== '')?.line;
  const others = lines.filter(({ content, numbers }) => numbers.length === 0 && content !== '');
  return {
    numbers: lines.flatMap(({ line, numbers }) => numbers.map((number) => ({ line, text: number }))),
    problems: others.flatMap(({ line, content }) =>
      line === first ? [] : [{ line, message: `${shorten(content)}: Must be a phone number.` }],
    ),
    skipped: others.flatMap(({ line, content }) => (line === first ? [{ line, text: content }] : [])),
  };
}

/** Returns null if the text isn't a table with several columns. Then none of its numbers is lost, because all parts are read. */
function openTable(text: string): PhoneList | null {
  try {
    const list = openPhoneList(toTextFile('The text', text), [], '');
    return list.names.filter((name) => name !== '').length > 1 && findPhoneColumns(list.names).length > 0 ? list : null;
  } catch (error) {
    if (error instanceof UnreadableFile) return null;
    throw error;
  }
}

function readList(list: PhoneList, text: string): WrittenNumbers {
  const reader = list.createReader();
  const lines = [...reader.push(text), ...reader.end()];
  return {
    numbers: lines.flatMap(({ line, numbers }) => numbers.map((number) => ({ line, text: number }))),
    problems: lines.flatMap(({ line, question }) => (question === null ? [] : [{ line, message: question }])),
    skipped: lines.flatMap(({ line, cells, numbers, question }) =>
      numbers.length === 0 && question === null ? [{ line, text: cells.filter((cell) => cell !== '').join(', ') }] : [],
    ),
  };
}

/** @property text a number on each line; null if there's a problem @property columns their names, if one can be chosen */
export type ReadFile = { text: string | null; note: string; problem: string | null; columns: readonly string[] };

/** Reads a list of numbers from a file. @param column empty if the column is to be found by its header */
export async function readFile(file: Blob & { name: string }, column: string): Promise<ReadFile> {
  const unread = (problem: string, columns: readonly string[] = []) => ({ text: null, note: '', problem, columns });
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const source = await openText({
      name: file.name,
      async *chunks() {
        yield bytes;
      },
    });
    let text = '';
    for await (const chunk of source.chunks()) text += chunk;
    const list = openPhoneList(source, column === '' ? [] : [column], 'Choose it below.');
    const { numbers, problems, skipped } = readList(list, text);
    const columns = list.names.filter((name) => name !== '');
    if (problems.length > 0) return unread(`${describeProblems(problems)}\nChoose the column with the numbers.`, columns);
    if (numbers.length === 0) return unread(`${file.name} contains no phone numbers.`, columns);
    const note = `Column ${list.columns.join(', ')}: ${counted(numbers.length, 'number')}${skipped.length > 0 ? `, ${skipped.length} empty` : ''}.`;
    return { text: numbers.map((number) => number.text).join('\n'), note: [...source.notes, note].join(' '), problem: null, columns };
  } catch (error) {
    if (error instanceof UnclearColumn) return unread(error.message, error.names);
    if (error instanceof UnreadableFile) return unread(error.message);
    throw error;
  }
}

/** @property repeated how many were on an earlier line, too @property lines what became of each, first what wasn't simply added */
export type AddedNumbers = AddedNumbersView & { repeated: number; lines: readonly (WrittenNumber & { result: string })[] };

/** Adds a list of any length in several requests, once all of it is checked. Adding a number twice does no harm after a failure. */
export async function addChecked(
  { numbers, problems, skipped }: WrittenNumbers,
  country: string | undefined,
  add: (part: string[]) => Promise<Result<AddedNumbersView>>,
): Promise<Result<AddedNumbers>> {
  // Loaded only here, because it contains the numbering plans of all countries. If that fails, the core still checks each request.
  const readPhone = await import('#contract/calls/phone.ts').then((phone) => phone.readPhone).catch(() => null);
  const read = numbers.map((number) => {
    const reading = readPhone?.(number.text, { country, accept: 'possible' });
    return { ...number, phone: number.text, isValid: true, reason: null, ...reading };
  });
  const invalid = read.flatMap(({ line, text, reason }) => (reason === null ? [] : [{ line, message: `${shorten(text)}: ${reason}` }]));
  if (numbers.length === 0 || problems.length + invalid.length > 0)
    return { ok: false, failure: toFailure([...problems, ...invalid].sort(byLine)) };
  const sum = { added: 0, known: 0, beingDialed: 0, notValid: 0 };
  const known = new Set<string>();
  // A number may be written in several ways.
  const same = Map.groupBy(read, ({ phone }) => phone);
  const texts = [...same.values()].flatMap(([first]) => first?.text ?? []);
  for (let from = 0; from < texts.length; from += maxAddedNumbers) {
    const result = await add(texts.slice(from, from + maxAddedNumbers));
    if (!result.ok) return result;
    sum.added += result.value.added;
    sum.known += result.value.known;
    sum.beingDialed += result.value.beingDialed;
    sum.notValid += result.value.notValid ?? 0;
    for (const phone of result.value.knownPhones ?? []) known.add(phone);
  }
  const describe = (each: (typeof read)[number]): string => {
    const [first = each] = same.get(each.phone) ?? [];
    if (first !== each) return `Same number as on line ${first.line}`;
    return known.has(each.text) ? 'Was already on the list' : each.isValid ? simplyAdded : 'Added, but isn’t valid today';
  };
  const lines = [
    ...read.map((each) => ({ line: each.line, text: each.text, result: describe(each) })),
    ...skipped.map((each) => ({ ...each, result: 'Skipped: not a number' })),
  ];
  const isAdded = ({ result }: { result: string }) => Number(result === simplyAdded);
  lines.sort((a, b) => isAdded(a) - isAdded(b) || byLine(a, b));
  return { ok: true, value: { ...sum, repeated: read.length - texts.length, lines } };
}

const simplyAdded = 'Added';

function byLine(a: Problem | WrittenNumber, b: Problem | WrittenNumber): number {
  return a.line - b.line;
}

/** More than anyone reads, or fixes by hand. */
export const shownLines = 1_000;

function describeProblems(problems: readonly Problem[]): string {
  const lines = problems.slice(0, shownLines).map(({ line, message }) => `Line ${line}: ${message}`);
  const more = problems.length - shownLines;
  return [...lines, ...(more > 0 ? [`and ${counted(more, 'more line')}`] : [])].join('\n');
}

function toFailure(problems: readonly Problem[]): Failure {
  const message = problems.length > 0 ? describeProblems(problems) : 'Enter a phone number.';
  return refusal('invalid', message, [{ path: 'phones', message }]);
}

/** Says what was added, how many numbers aren't valid, and which calls can no longer be stopped. */
export function describeAdded({ added, known, beingDialed, notValid = 0, repeated }: Omit<AddedNumbers, 'lines'>): string {
  const sentences = [
    added === 0 ? '' : `Added ${counted(added, 'number')}.`,
    known === 0 ? '' : `${counted(known, 'number')} ${known === 1 ? 'was' : 'were'} already on the list.`,
    repeated === 0 ? '' : `${counted(repeated, 'number')} ${repeated === 1 ? 'was' : 'were'} there twice.`,
    notValid === 0 ? '' : `${counted(notValid, 'number')} ${notValid === 1 ? 'isn’t' : 'aren’t'} valid today, but may be old or new.`,
    beingDialed === 0 ? '' : describeBeingDialed(beingDialed, added + known),
  ];
  return sentences.filter((sentence) => sentence !== '').join(' ');
}

function describeBeingDialed(calls: number, numbers: number): string {
  const target = numbers === 1 ? 'this number' : 'these numbers';
  return `${counted(calls, 'call')} to ${target} ${calls === 1 ? 'is' : 'are'} being dialed now and can’t be stopped.`;
}
