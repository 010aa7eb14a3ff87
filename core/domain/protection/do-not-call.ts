import { z } from 'zod';
import { endOfDay } from '#contract/calendar.ts';
import { readPhone } from '#contract/calls/phone.ts';
import { readAll } from '#contract/files/csv.ts';
import type { ListLine, PhoneList } from '#contract/files/phone-list.ts';
import { limits } from '#contract/limits.ts';
import type { FieldError } from '#contract/problems.ts';
import {
  type DoNotCallReason,
  type DoNotCallSource,
  doNotCallReasonLabels,
  doNotCallReasonSchema,
  doNotCallReasons,
  doNotCallSources,
} from '#contract/protection/do-not-call.ts';
import type { AddNumbers } from '#contract/protection/protection.ts';
import { counted } from '#contract/text/count.ts';
import { instantSchema, lineSchema, parseTimestamp, toPhonePrefix } from '#contract/text/text.ts';
import { auditEvent } from '../audit/audit.ts';
import { type CampaignAccess, scopeFor } from '../directory/scope.ts';
import { instant, type Millis } from '../instant.ts';
import type { Actor, DoNotCallEntry, ImportedNumber, ImportedNumbers, OwningScope, SignedInCaller, Viewer } from '../model.ts';
import { type Page, rowsForPage, toPage, toPageOfSize } from '../paging.ts';
import type { Ports, ProtectionAccess } from '../ports.ts';
import { invalidField, Problem } from '../problem.ts';
import { isCountry, notACountry } from './numbers.ts';

/** Numbers as they were typed, for the list of an account or of a partner. @property country for numbers without a country code */
type NumbersInput = {
  owner: OwningScope;
  phones: readonly string[];
  country: string | undefined;
  reason: DoNotCallReason;
  note: string | null;
  source: DoNotCallSource;
  endsAt: Millis | null;
};

/** @property notValid how many of the numbers aren't valid in today's numbering plans */
type Added = { added: number; known: number; beingDialed: number; notValid?: number };

/** @throws Problem `invalid` with an error for each number that can't be understood. In that case, no number is added */
export async function addNumbers(ports: Ports, actor: Actor, input: NumbersInput): Promise<Added> {
  if (input.country !== undefined && !isCountry(input.country)) throw invalidField('country', notACountry);
  const { country } = input;
  const read = input.phones.map((phone) => readPhone(phone, { country, accept: 'possible' }));
  const errors = read.flatMap((each, index): FieldError[] => ('reason' in each ? [{ path: `phones.${index}`, message: each.reason }] : []));
  const [error] = errors;
  if (error) throw new Problem('invalid', `Invalid body at ${error.path}: ${error.message}`, { errors: errors.slice(0, maxErrors) });
  const { owner, reason, note, source, endsAt } = input;
  const now = ports.clock.now();
  const phones = new Map(read.flatMap((each) => ('phone' in each ? [[each.phone, each.isValid]] : [])));
  const numbers = Array.from(phones.keys(), (phone) => ({ id: ports.randomness.id(), phone }));
  const notValid = [...phones.values()].filter((isValid) => !isValid).length;
  const [first] = numbers;
  if (!first) return { added: 0, known: 0, beingDialed: 0 };
  const subject = { kind: 'do-not-call', id: first.id, name: counted(numbers.length, 'number') } as const;
  const entry = { owner, reason, note, source, endsAt, call: null, createdBy: actor.who && { id: actor.who.id, name: actor.who.name } };
  const event = auditEvent(ports, actor, 'do-not-call.added', subject, owner);
  const result = await ports.stores.protection.addNumbers({ ...entry, createdAt: now, numbers }, now, event);
  ports.onListed();
  return { ...result, ...(notValid > 0 && { notValid }) };
}

const maxErrors = 50;

/** Adds numbers for a signed-in user. Account users can add to their account's list. */
export async function addNumbersInScope(ports: Ports, { viewer, actor }: SignedInCaller, input: AddNumbers): Promise<Added> {
  const owner = await findOwner(ports, viewer, input);
  const { phones, country, reason, note = null, until, timeZone } = input;
  const endsAt = until === undefined ? null : instant(endOfDay(until, timeZone));
  if (endsAt !== null && endsAt < ports.clock.now()) throw invalidField('until', 'Must not be in the past.');
  return addNumbers(ports, actor, { owner, phones, country, reason, note, source: 'console', endsAt });
}

async function findOwner(ports: Ports, viewer: Viewer, { accountId, partnerId }: AddNumbers): Promise<OwningScope> {
  const { campaigns, owningScope } = scopeFor(viewer);
  if (accountId === undefined && partnerId === undefined) {
    if (owningScope) return owningScope;
    throw noScope();
  }
  const kind = accountId === undefined ? 'partner' : 'account';
  const access = requireAccess(campaigns);
  const scope = await ports.stores.protection.findScope(access, kind, accountId ?? partnerId ?? '');
  // Someone who sees only one account can't decide for all of the partner's accounts.
  if (!scope || (kind === 'partner' && access.kind === 'account')) throw notInScope();
  return scope.owner;
}

export async function listNumbers(ports: Ports, viewer: Viewer, search: string, cursor: string | null): Promise<Page<DoNotCallEntry>> {
  return findNumbers(ports, viewer, search, cursor, rowsForPage, toPage);
}

export async function findNumbersToExport(
  ports: Ports,
  viewer: Viewer,
  search: string,
  cursor: string | null,
): Promise<Page<DoNotCallEntry>> {
  return findNumbers(ports, viewer, search, cursor, limits.exportPage + 1, (items, getCursor) =>
    toPageOfSize(limits.exportPage, items, getCursor),
  );
}

async function findNumbers(
  ports: Ports,
  viewer: Viewer,
  search: string,
  cursor: string | null,
  rows: number,
  page: typeof toPage<DoNotCallEntry>,
): Promise<Page<DoNotCallEntry>> {
  const { campaigns } = scopeFor(viewer);
  if (campaigns.kind === 'nothing') return { items: [], nextCursor: null };
  return listPage(ports, campaigns, search, cursor, rows, page);
}

/** Returns a page of the numbers that someone may see. @param page turns rows into a page */
export async function listPage(
  ports: Ports,
  campaigns: ProtectionAccess,
  search: string,
  cursor: string | null,
  rows = rowsForPage,
  page: typeof toPage<DoNotCallEntry> = toPage,
): Promise<Page<DoNotCallEntry>> {
  const { protection } = ports.stores;
  if (search.trim() === '') return page(await protection.listNumbers(campaigns, cursor, rows), ({ id }) => id);
  const prefix = toPhonePrefix(search);
  if (prefix === null) return { items: [], nextCursor: null };
  return page(await protection.searchNumbers(campaigns, prefix, parsePosition(cursor), rows), ({ phone, id }) => `${phone.slice(1)}_${id}`);
}

function parsePosition(cursor: string | null): { phone: string; id: string } | null {
  if (cursor === null) return null;
  const [, digits, id] = /^(\d{1,15})_(.+)$/.exec(cursor) ?? [];
  if (digits === undefined || id === undefined)
    throw new Problem('malformed-request', 'Invalid query parameter cursor: pass the nextCursor from the previous page.');
  return { phone: `+${digits}`, id };
}

/** Removes a number from the list. The audit log keeps the reason. */
export async function liftNumber(ports: Ports, { viewer, actor }: SignedInCaller, id: string, reason: string): Promise<void> {
  requireAdministrator(viewer, 'remove numbers from the do-not-call list');
  const access = requireAccess(scopeFor(viewer).campaigns);
  const entry = await ports.stores.protection.findEntry(access, id);
  if (!entry) throw notInScope();
  await liftEntry(ports, actor, entry, reason);
}

/** @throws Problem `not-found` if someone else has already removed it */
export async function liftEntry(ports: Ports, actor: Actor, entry: DoNotCallEntry, reason: string): Promise<void> {
  const subject = { kind: 'do-not-call', id: entry.id, name: reason } as const;
  const owner = await findEntryOwner(ports, entry);
  const isLifted = await ports.stores.protection.lift(entry.id, auditEvent(ports, actor, 'do-not-call.lifted', subject, owner));
  if (!isLifted) throw notInScope();
}

async function findEntryOwner(ports: Ports, { scope }: DoNotCallEntry): Promise<OwningScope | null> {
  return (await ports.stores.protection.findScope({ kind: 'all' }, scope.kind, scope.id))?.owner ?? null;
}

/** Account users can read rules and add numbers, but not change anything else. @throws Problem `forbidden` */
export function requireAdministrator({ userType }: Viewer, action: string): void {
  if (userType === 'account') throw new Problem('forbidden', `Only partner users and service staff can ${action}.`);
}

/** @throws Problem `forbidden` if a staff user hasn't selected a tenancy */
export function requireAccess(access: CampaignAccess): ProtectionAccess {
  if (access.kind === 'nothing') throw noScope();
  return access;
}

export function notInScope(): Problem {
  return new Problem('not-found', "This ID doesn't exist, or you don't have access to it.");
}

function noScope(): Problem {
  return new Problem('forbidden', 'Select an account or partner first.');
}

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
  await job.skipped?.save();
  if (checked.numbers === 0 || (checked.invalidLines > 0 && !job.skipped)) return { ...checked, added: 0, known: 0 };
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
