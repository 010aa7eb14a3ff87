import { z } from 'zod';
import { endOfDay } from '#contract/calendar.ts';
import { readPhone } from '#contract/calls/phone.ts';
import { readAll } from '#contract/files/csv.ts';
import type { ListLine, PhoneList } from '#contract/files/phone-list.ts';
import { limits } from '#contract/limits.ts';
import type { FieldError } from '#contract/problems.ts';
import { doNotCallReasonLabels, doNotCallReasonSchema, doNotCallReasons, doNotCallSources } from '#contract/protection/do-not-call.ts';
import type { AddedNumbersView, AddNumbers } from '#contract/protection/protection.ts';
import { counted } from '#contract/text/count.ts';
import { instantSchema, lineSchema, parseTimestamp, toPhonePrefix } from '#contract/text/text.ts';
import { auditEvent } from '../audit/audit.ts';
import { type CampaignAccess, requireAdministrator, scopeFor } from '../directory/scope.ts';
import { instant } from '../instant.ts';
import type { Actor, Caller, OwningScope } from '../model.ts';
import { idCursors, invalidCursor, type Page, type PhonePosition, phoneCursors, readPage, toId, withTotal } from '../paging.ts';
import type { DoNotCallEntry, ImportedNumber, ImportedNumbers, Ports, ProtectionAccess } from '../ports.ts';
import { invalidBody, invalidField, notFound, Problem } from '../problem.ts';
import { isCountry, notACountry } from './numbers.ts';

/** @throws Problem `invalid` with an error for each number that can't be understood. In that case, no number is added */
export async function addNumbers(ports: Ports, { viewer, actor }: Caller, input: AddNumbers): Promise<AddedNumbersView> {
  const owner = await findOwner(ports, viewer, input);
  const { phones: texts, country, reason, note = null, until, timeZone } = input;
  const now = ports.clock.now();
  const endsAt = until === undefined ? null : instant(endOfDay(until, timeZone));
  if (endsAt !== null && endsAt < now) throw invalidField('until', 'Must not be in the past.');
  if (country !== undefined && !isCountry(country)) throw invalidField('country', notACountry);
  const read = texts.map((text) => ({ text, ...readPhone(text, { country, accept: 'possible' }) }));
  const errors = read.flatMap((each, index): FieldError[] => ('reason' in each ? [{ path: `phones.${index}`, message: each.reason }] : []));
  if (errors.length > 0) throw invalidBody(errors);
  const phones = new Map(read.flatMap((each) => ('phone' in each ? [[each.phone, each.isValid]] : [])));
  const numbers = Array.from(phones.keys(), (phone) => ({ id: ports.randomness.id(), phone }));
  const notValid = [...phones.values()].filter((isValid) => !isValid).length;
  const [first] = numbers;
  if (!first) return { added: 0, known: 0, beingDialed: 0 };
  const subject = { kind: 'do-not-call', id: first.id, name: counted(numbers.length, 'number') } as const;
  const source = viewer.userType === 'operator' ? 'admin' : 'console';
  const createdBy = actor.who && { id: actor.who.id, name: actor.who.name };
  const entries = { owner, reason, note, source, endsAt, call: null, createdBy, createdAt: now, numbers } as const;
  const event = auditEvent(ports, actor, 'do-not-call.added', subject, owner);
  const { known, beingDialed } = await ports.stores.doNotCall.addNumbers(entries, now, event);
  ports.onDoNotCallAdded();
  const wereThere = new Set(known);
  const knownPhones = read.flatMap((each) => ('phone' in each && wereThere.has(each.phone) ? [each.text] : []));
  return {
    ...{ added: numbers.length - known.length, known: known.length, beingDialed },
    ...(known.length > 0 && { knownPhones }),
    ...(notValid > 0 && { notValid }),
  };
}

async function findOwner(ports: Ports, viewer: Caller['viewer'], { accountId, partnerId }: AddNumbers): Promise<OwningScope> {
  const { campaigns, owningScope } = scopeFor(viewer);
  if (accountId === undefined && partnerId === undefined) {
    if (owningScope) return owningScope;
    throw noScope();
  }
  const kind = accountId === undefined ? 'partner' : 'account';
  const access = requireAccess(campaigns);
  const scope = await ports.stores.rules.findScope(access, kind, accountId ?? partnerId ?? '');
  // Someone who sees only one account can't decide for all of the partner's accounts.
  if (!scope || (kind === 'partner' && access.kind === 'account')) throw notFound('ID');
  return scope.owner;
}

export async function listNumbers(ports: Ports, access: CampaignAccess, search: string, cursor: string | null) {
  const page = await findNumbers(ports, access, search, cursor);
  const prefix = search.trim() === '' ? '' : toPhonePrefix(search);
  return withTotal(page, cursor, async (max) =>
    access.kind === 'nothing' || prefix === null ? 0 : ports.stores.doNotCall.countNumbers(access, prefix, max),
  );
}

/** Lists newest first, or by number if there's a search. */
export async function findNumbers(
  { stores: { doNotCall } }: Ports,
  access: CampaignAccess,
  search: string,
  cursor: string | null,
  size: number = limits.page,
): Promise<Page<DoNotCallEntry>> {
  if (access.kind === 'nothing') return { items: [], nextCursor: null };
  if (search.trim() === '')
    return readPage(entryCursors, { cursor, size }, (after, rows) => doNotCall.listNumbers(access, after, rows), toId);
  const prefix = toPhonePrefix(search);
  if (prefix === null) return { items: [], nextCursor: null };
  const searchAfter = (after: PhonePosition | null, rows: number) => {
    if (after && !after.phone.startsWith(prefix)) throw invalidCursor();
    return doNotCall.searchNumbers(access, prefix, after, rows);
  };
  return readPage(phoneCursors, { cursor, size }, searchAfter, ({ phone, id }) => ({ phone, id }));
}

const entryCursors = idCursors('entries');

/** The audit log keeps the reason. */
export async function liftNumber(ports: Ports, { viewer, actor }: Caller, id: string, reason: string): Promise<void> {
  requireAdministrator(viewer, 'remove numbers from the do-not-call list');
  const { doNotCall } = ports.stores;
  const entry = await doNotCall.findEntry(requireAccess(scopeFor(viewer).campaigns), id);
  if (!entry) throw notFound('ID', viewer);
  const subject = { kind: 'do-not-call', id, name: reason } as const;
  const owner = (await ports.stores.rules.findScope({ kind: 'all' }, entry.scope.kind, entry.scope.id))?.owner ?? null;
  if (!(await doNotCall.lift(id, auditEvent(ports, actor, 'do-not-call.lifted', subject, owner)))) throw notFound('ID', viewer);
}

/** @throws Problem `forbidden` if a staff user hasn't selected a tenancy */
export function requireAccess(access: CampaignAccess): ProtectionAccess {
  if (access.kind === 'nothing') throw noScope();
  return access;
}

function noScope(): Problem {
  return new Problem('forbidden', 'Select an account or partner first.');
}

type InvalidLine = { line: number; message: string };

/**
 * @property numbers how many the list has, including repeated ones
 * @property empty how many lines have none
 * @property notValid how many numbers have a possible length, but aren't valid, because they're old, or newer than our data
 * @property wrong the first invalid lines
 * @property questions how many of all invalid lines have a number in another column
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
  await job.skipped?.save();
  if (checked.numbers === 0 || (checked.invalidLines > 0 && !job.skipped)) return { ...checked, added: 0, known: 0 };
  const subject = { kind: 'do-not-call', id: ports.randomness.id(), name: counted(checked.numbers, 'number') } as const;
  const event = auditEvent(ports, actor, 'do-not-call.imported', subject, job.entry.owner);
  const added = await ports.stores.doNotCall.importNumbers(job.entry, identified(ports, job), ports.clock.now(), event);
  ports.onDoNotCallAdded();
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

/** The function returns the details of an exported list's numbers, or says which of them is invalid. */
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
