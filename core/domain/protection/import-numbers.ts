import { z } from 'zod';
import { readPhone } from '#contract/calls/phone.ts';
import { readAll } from '#contract/files/csv.ts';
import type { ListLine, PhoneList } from '#contract/files/phone-list.ts';
import { limits } from '#contract/limits.ts';
import { doNotCallReasonLabels, doNotCallReasonSchema, doNotCallReasons, doNotCallSources } from '#contract/protection/do-not-call.ts';
import { counted } from '#contract/text/count.ts';
import { instantSchema, lineSchema, parseTimestamp } from '#contract/text/text.ts';
import { auditEvent } from '../audit/audit.ts';
import { instant } from '../instant.ts';
import type { Actor, ImportedNumber, ImportedNumbers } from '../model.ts';
import type { Ports } from '../ports.ts';

type InvalidLine = { line: number; message: string };

/**
 * @property numbers how many numbers the list has, including repeated ones
 * @property empty how many lines have none
 * @property notValid how many of the numbers have a possible length, but aren't valid, because they're old, or newer than our data
 * @property wrong the first invalid lines
 * @property invalidLines the number of all invalid lines
 * @property questions how many of them have a number in another column
 */
type CheckedList = { numbers: number; empty: number; notValid: number; wrong: InvalidLine[]; invalidLines: number; questions: number };
export type NumberImportResult = CheckedList & { added: number; known: number };

const maxInvalidLines = 10_000;

type NumberImport = {
  list: PhoneList;
  /** Reads the file from the beginning. It's called twice. */
  chunks(): AsyncIterable<string>;
  country: string | undefined;
  entry: ImportedNumbers;
  /** Receives the invalid lines, and saves them before anything is imported. Null if an invalid line stops the import. */
  skipped: { add(line: ListLine): Promise<void>; save(): Promise<void> } | null;
};

/**
 * Imports a list of any length: checks all of it, and then adds the numbers in batches. If a line is invalid or can't be read, nothing is
 * imported. If the process is killed, the numbers added so far stay, and importing the list again adds the others.
 */
export async function importNumbers(ports: Ports, actor: Actor, job: NumberImport): Promise<NumberImportResult> {
  const checked = await checkList(job);
  if (checked.numbers === 0 || (checked.invalidLines > 0 && !job.skipped)) return { ...checked, added: 0, known: 0 };
  await job.skipped?.save();
  const subject = { kind: 'do-not-call', id: ports.randomness.id(), name: counted(checked.numbers, 'number') } as const;
  const event = auditEvent(ports, actor, 'do-not-call.imported', subject, job.entry.owner);
  const added = await ports.stores.protection.importNumbers(job.entry, identified(ports, job), ports.clock.now(), event);
  ports.onListed();
  return { ...checked, added, known: checked.numbers - added };
}

async function checkList(job: NumberImport): Promise<CheckedList> {
  const checked: CheckedList = { numbers: 0, empty: 0, notValid: 0, wrong: [], invalidLines: 0, questions: 0 };
  for await (const { line, read } of readLines(job)) {
    if ('message' in read) {
      checked.invalidLines++;
      if (line.question !== null) checked.questions++;
      if (checked.wrong.length < maxInvalidLines) checked.wrong.push({ line: line.line, message: read.message });
      await job.skipped?.add(line);
    } else {
      checked.numbers += read.numbers.length;
      checked.notValid += read.notValid;
      if (read.numbers.length === 0) checked.empty++;
    }
  }
  return checked;
}

async function* identified(ports: Ports, job: NumberImport): AsyncGenerator<{ id: string } & ImportedNumber> {
  for await (const { read } of readLines(job))
    if ('numbers' in read) yield* read.numbers.map((number) => ({ id: ports.randomness.id(), ...number }));
}

type Read = { numbers: ImportedNumber[]; notValid: number } | { message: string };

async function* readLines({ list, chunks, country }: NumberImport): AsyncGenerator<{ line: ListLine; read: Read }> {
  const readDetails = detailsReader(list);
  for await (const line of readAll(chunks(), list.createReader())) yield { line, read: readLine(line, country, readDetails) };
}

function readLine({ numbers, question, cells }: ListLine, country: string | undefined, readDetails: DetailsReader): Read {
  if (question !== null) return { message: question };
  const details = numbers.length === 0 ? {} : readDetails(cells);
  if (typeof details === 'string') return { message: details };
  const result: Read = { numbers: [], notValid: 0 };
  for (const text of numbers) {
    const read = readPhone(text, { country, accept: 'possible' });
    if ('reason' in read) return { message: `${text}: ${read.reason}` };
    if (!read.isValid) result.notValid++;
    result.numbers.push({ phone: read.phone, ...details });
  }
  return result;
}

/** The columns of an exported list that an import keeps. */
const detailColumns = { Reason: 'reason', Note: 'note', Source: 'source', Added: 'createdAt', Ends: 'endsAt' } as const;

const time = instantSchema.transform((text) => instant(parseTimestamp(text)));

const detailsSchema = z.object({
  reason: z
    .preprocess((text) => doNotCallReasons.find((each) => doNotCallReasonLabels[each] === text) ?? text, doNotCallReasonSchema)
    .exactOptional(),
  note: lineSchema(limits.name).exactOptional(),
  source: z.enum(doNotCallSources, { error: `Must be one of ${doNotCallSources.join(', ')}.` }).exactOptional(),
  createdAt: time.exactOptional(),
  endsAt: time.exactOptional(),
});

type DetailsReader = (cells: readonly string[]) => Omit<ImportedNumber, 'phone'> | string;

/** Returns a function that reads the details of an exported list's numbers, or says which of them is invalid. */
function detailsReader({ names, columns }: PhoneList): DetailsReader {
  // Other programs have columns with these names, too.
  const isExported = columns.length === 1 && columns[0] === 'Number';
  const kept = Object.entries(detailColumns).flatMap(([name, key]) =>
    isExported && names.includes(name) ? [{ name, key, index: names.indexOf(name) }] : [],
  );
  if (kept.length === 0) return () => ({});
  return (cells) => {
    const { data, error } = detailsSchema.safeParse(
      Object.fromEntries(kept.flatMap(({ key, index }) => (cells[index] ? [[key, cells[index]]] : []))),
    );
    if (data) return data;
    const [issue] = error.issues;
    return `${kept.find(({ key }) => key === issue?.path[0])?.name}: ${issue?.message}`;
  };
}
