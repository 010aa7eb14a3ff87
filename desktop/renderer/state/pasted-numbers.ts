import { openPhoneList, type PhoneList, UnclearColumn } from '#contract/files/phone-list.ts';
import { findPhoneColumns } from '#contract/files/table.ts';
import { openText, toTextFile, UnreadableFile } from '#contract/files/text-file.ts';
import { maxAddedNumbers } from '#contract/protection/do-not-call.ts';
import type { AddedNumbersView } from '#contract/protection/protection.ts';
import type { Failure, Result } from '../../ipc.ts';
import { pluralize } from './format.ts';

/** A number as it's written. */
type WrittenNumber = { line: number; text: string };
type Problem = { line: number; message: string };

/**
 * Returns everything in a pasted text that could be a phone number: each part with a digit between line breaks, commas, semicolons and tabs.
 * A line without any is a problem, unless it's the first one, which may be a header.
 * If the text is a table whose header names the column with the numbers, returns only those, and the lines with others as problems.
 */
export function readNumbers(pasted: string): { numbers: WrittenNumber[]; problems: Problem[] } {
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
  const isHeader = (line: number) => lines.find(({ content }) => content !== '')?.line === line;
  return {
    numbers: lines.flatMap(({ line, numbers }) => numbers.map((number) => ({ line, text: number }))),
    problems: lines.flatMap(({ line, content, numbers }) =>
      numbers.length > 0 || content === '' || isHeader(line) ? [] : [{ line, message: `${content}: Must be a phone number.` }],
    ),
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

function readList(list: PhoneList, text: string): { numbers: WrittenNumber[]; problems: Problem[]; empty: number } {
  const reader = list.createReader();
  const lines = [...reader.push(text), ...reader.end()];
  return {
    numbers: lines.flatMap(({ line, numbers }) => numbers.map((number) => ({ line, text: number }))),
    problems: lines.flatMap(({ line, question }) => (question === null ? [] : [{ line, message: question }])),
    empty: lines.filter(({ numbers, question }) => numbers.length === 0 && question === null).length,
  };
}

/**
 * What was read from a file.
 *
 * @property text the numbers, one on each line; null if there's a problem
 * @property columns the names of the columns, if one can be chosen
 */
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
    const { numbers, problems, empty } = readList(list, text);
    const columns = list.names.filter((name) => name !== '');
    if (problems.length > 0) return unread(`${describeProblems(problems)}\nChoose the column with the numbers.`, columns);
    if (numbers.length === 0) return unread(`${file.name} contains no phone numbers.`, columns);
    const note = `Column ${list.columns.join(', ')}: ${pluralize(numbers.length, 'number')}${empty > 0 ? `, ${empty} empty` : ''}.`;
    return { text: numbers.map((number) => number.text).join('\n'), note: [...source.notes, note].join(' '), problem: null, columns };
  } catch (error) {
    if (error instanceof UnclearColumn) return unread(error.message, error.names);
    if (error instanceof UnreadableFile) return unread(error.message);
    throw error;
  }
}

/**
 * Adds a list of any length, in several requests, once all of it has been checked. Adding a number twice does no harm, so a failed list can
 * be added again.
 *
 * @param problems why other lines of the list can't be read
 */
export async function addChecked(
  numbers: readonly WrittenNumber[],
  problems: readonly Problem[],
  country: string | undefined,
  add: (part: string[]) => Promise<Result<AddedNumbersView>>,
): Promise<Result<AddedNumbersView>> {
  // Loaded only here, because it contains the numbering plans of all countries. If that fails, the core still checks each request.
  const read = await import('#contract/calls/phone.ts').then(({ readPhone }) => readPhone).catch(() => null);
  const readings = numbers.map(({ line, text }) => ({ line, text, reading: read?.(text, { country, accept: 'possible' }) }));
  const invalid = readings.flatMap(({ line, text, reading }) =>
    reading && 'reason' in reading ? [{ line, message: `${text}: ${reading.reason}` }] : [],
  );
  if (numbers.length === 0 || problems.length + invalid.length > 0) return { ok: false, failure: toFailure([...problems, ...invalid]) };
  const sum = { added: 0, known: 0, beingDialed: 0, notValid: 0 };
  const texts = [...new Set(numbers.map(({ text }) => text))];
  for (let from = 0; from < texts.length; from += maxAddedNumbers) {
    const result = await add(texts.slice(from, from + maxAddedNumbers));
    if (!result.ok) return result;
    sum.added += result.value.added;
    sum.known += result.value.known;
    sum.beingDialed += result.value.beingDialed;
    sum.notValid += result.value.notValid ?? 0;
  }
  return { ok: true, value: sum };
}

/** More than anyone fixes by hand. */
const shownProblems = 1_000;

function describeProblems(problems: readonly Problem[]): string {
  const lines = problems.slice(0, shownProblems).map(({ line, message }) => `Line ${line}: ${message}`);
  const more = problems.length - shownProblems;
  return [...lines, ...(more > 0 ? [`and ${pluralize(more, 'more line')}`] : [])].join('\n');
}

function toFailure(problems: readonly Problem[]): Failure {
  const message = problems.length > 0 ? describeProblems(problems) : 'Enter a phone number.';
  return { kind: 'refused', code: 'invalid', detail: message, errors: [{ path: 'phones', message }], retryAfterSeconds: null };
}

/** Says what was added, how many numbers aren't valid, and which calls can no longer be stopped. */
export function describeAdded({ added, known, beingDialed, notValid = 0 }: AddedNumbersView): string {
  const sentences = [
    added === 0 ? '' : `Added ${pluralize(added, 'number')}.`,
    known === 0 ? '' : `${pluralize(known, 'number')} ${known === 1 ? 'was' : 'were'} already on the list.`,
    notValid === 0 ? '' : `${pluralize(notValid, 'number')} ${notValid === 1 ? 'isn’t' : 'aren’t'} valid today, but may be old or new.`,
    beingDialed === 0 ? '' : describeBeingDialed(beingDialed, added + known),
  ];
  return sentences.filter((sentence) => sentence !== '').join(' ');
}

function describeBeingDialed(calls: number, numbers: number): string {
  const target = numbers === 1 ? 'this number' : 'these numbers';
  return `${pluralize(calls, 'call')} to ${target} ${calls === 1 ? 'is' : 'are'} being dialed now and can’t be stopped.`;
}
