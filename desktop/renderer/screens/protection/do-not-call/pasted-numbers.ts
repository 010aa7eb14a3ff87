import { maxAddedNumbers } from '#contract/protection/do-not-call.ts';
import type { AddedNumbersView } from '#contract/protection/protection.ts';
import { readFirstCell } from '#contract/text/csv.ts';
import type { Result } from '../../../../ipc.ts';
import { pluralize } from '../../../state/format/format.ts';

/**
 * Returns the numbers in a pasted list or file: one per line, from the first cell of a line. Ignores lines without a digit, such as a
 * header.
 */
export function readNumbers(text: string): string[] {
  const cells = text.split(/[\r\n]+/).map(readFirstCell);
  return [...new Set(cells.filter((cell) => /\d/.test(cell)))];
}

/** Adds a list of any length, in several requests. Adding a number twice does no harm, so a failed list can be added again. */
export async function addAll(
  numbers: readonly string[],
  add: (part: string[]) => Promise<Result<AddedNumbersView>>,
): Promise<Result<AddedNumbersView>> {
  const sum = { added: 0, known: 0, beingDialed: 0, notValid: 0 };
  for (let from = 0; from < numbers.length; from += maxAddedNumbers) {
    const result = await add(numbers.slice(from, from + maxAddedNumbers));
    if (!result.ok) return withNumbers(result, numbers, from);
    sum.added += result.value.added;
    sum.known += result.value.known;
    sum.beingDialed += result.value.beingDialed;
    sum.notValid += result.value.notValid ?? 0;
  }
  return { ok: true, value: sum };
}

const shownErrors = 5;

/** Names the invalid numbers instead of their positions. */
function withNumbers(result: Extract<Result<never>, { ok: false }>, numbers: readonly string[], from: number): Result<never> {
  const { failure } = result;
  if (failure.kind !== 'refused') return result;
  const named = failure.errors.flatMap(({ path, message }) => {
    const [, index] = /^phones\.(\d+)$/.exec(path) ?? [];
    return index === undefined ? [] : [`${numbers[from + Number(index)]}: ${message}`];
  });
  if (named.length === 0) return result;
  const more = named.length > shownErrors ? `\nand ${pluralize(named.length - shownErrors, 'more number')}` : '';
  const message = `${named.slice(0, shownErrors).join('\n')}${more}`;
  return { ok: false, failure: { ...failure, errors: [{ path: 'phones', message }] } };
}

/** Says what was added, and which calls can no longer be stopped. */
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
