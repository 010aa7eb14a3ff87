import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import { z } from 'zod';
import { endOfDay } from '#contract/calendar.ts';
import { readPhone } from '#contract/calls/phone.ts';
import { type DoNotCallReason, doNotCallReasonSchema } from '#contract/protection/do-not-call.ts';
import { countrySchema } from '#contract/protection/numbers.ts';
import { counted } from '#contract/text/count.ts';
import { timestamp } from '#contract/text/text.ts';
import { instant } from '../../domain/instant.ts';
import type { DoNotCallEntry, RuleScope } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports/ports.ts';
import type { ProtectionAccess } from '../../domain/ports/protection.ts';
import { Problem } from '../../domain/problem.ts';
import { addNumbers, liftEntry, listPage } from '../../domain/protection/do-not-call.ts';
import { importNumbers } from '../../domain/protection/import-numbers.ts';
import { isCountry, notACountry } from '../../domain/protection/numbers.ts';
import type { AdminContext, Runner } from '../program/context.ts';
import { withExamples } from '../program/help.ts';
import { nameSchema, parseInput } from '../program/input.ts';
import { oneLine } from '../program/output.ts';
import { shortName, table } from '../program/table.ts';
import { findScope, type ScopeOptions, withScope } from './scope.ts';

const kinds = ['account', 'partner'] as const;
const account = '--account 01a20138-3d19-7da7-9907-3a9fb48fa32a';

export function doNotCallCommands(program: Command, { withDatabase }: Runner): void {
  const list = program
    .command('do-not-call')
    .description('manage the numbers that an account, or all accounts of a partner, must not call');
  const add = withScope(list.command('add').argument('<phone>').description('add a number; queued calls to it end as blocked'), kinds)
    .option('--reason <reason>', 'asked, complaint, wrong-number or imported', 'asked')
    .option('--note <text>', 'a note for administrators')
    .option('--until <date>', 'last day of the entry, in UTC, such as 2027-01-31 (default: never ends)');
  withExamples(add, `do-not-call add +493012345678 ${account} --reason complaint`).action(withDatabase(runAdd));
  const remove = withScope(list.command('remove').argument('<phone>').description('allow calls to a number again'), kinds).requiredOption(
    '--reason <text>',
    'why it may be called again; kept in the audit log',
  );
  withExamples(remove, `do-not-call remove +493012345678 ${account} --reason "Asked for a call"`).action(withDatabase(runRemove));
  const show = withScope(list.command('list').description('list the numbers, newest first'), kinds)
    .option('--search <start>', 'only numbers that start with these digits')
    .option('--after <cursor>', 'continue after the page that returned this nextCursor');
  withExamples(show, `do-not-call list ${account}`, `--json do-not-call list ${account} --search +4930`).action(withDatabase(runList));
  const load = withScope(
    list
      .command('import')
      .argument('<file>')
      .description('add all numbers in a file: one per line, the first column of a CSV file, or a list exported from the console'),
    kinds,
  ).option('--country <code>', 'country of numbers without a country code, such as DE');
  load.addHelpText(
    'after',
    '\nIf a line is invalid, nothing is imported. If the import is interrupted, a core either finishes or deletes it.',
  );
  withExamples(load, `do-not-call import numbers.csv ${account} --country DE`).action(withDatabase(runImport));
}

type AddOptions = ScopeOptions & { reason: string; note?: string; until?: string };

async function runAdd({ ports, actor, output }: AdminContext, phone: string, options: AddOptions): Promise<void> {
  const scope = await findScope(ports, options, kinds);
  const number = parsePhone(phone);
  const reason: DoNotCallReason = parseInput(doNotCallReasonSchema, options.reason, '--reason');
  const note = options.note === undefined ? null : parseInput(nameSchema, options.note, '--note');
  const until =
    options.until === undefined ? null : parseInput(z.iso.date({ error: 'Must be a date, such as 2027-01-31.' }), options.until, '--until');
  const endsAt = until === null ? null : instant(endOfDay(until, 'UTC'));
  if (endsAt !== null && endsAt < ports.clock.now()) throw new Problem('invalid', '--until: Must not be in the past.');
  const request = { owner: scope.owner, phones: [number], country: undefined, reason, note, source: 'admin' as const, endsAt };
  const { added, beingDialed, notValid = 0 } = await addNumbers(ports, actor, request);
  const entry = await findEntry(ports, scope, number);
  const lines = [
    added > 0 ? `Added ${number} to the do-not-call list of ${scope.kind} ${scope.name}.` : `${number} was already on the list.`,
    ...(beingDialed > 0
      ? [`${counted(beingDialed, 'call')} to this number ${beingDialed === 1 ? 'is' : 'are'} being dialed now and can't be stopped.`]
      : []),
    ...(notValid > 0 ? ["It isn't valid in today's numbering plans, but it may be old or new."] : []),
  ];
  output.answer({ entry: entryJson(entry), beingDialed }, lines.join('\n'));
}

async function runRemove({ ports, actor, output }: AdminContext, phone: string, options: ScopeOptions & { reason: string }): Promise<void> {
  const scope = await findScope(ports, options, kinds);
  const number = parsePhone(phone);
  const reason = parseInput(nameSchema, options.reason, '--reason');
  await liftEntry(ports, actor, await findEntry(ports, scope, number), reason);
  output.answer({ removed: number }, `Removed ${number} from the do-not-call list of ${scope.kind} ${scope.name}.`);
}

/** @throws Problem `not-found` */
async function findEntry(ports: Ports, { id, name, kind, owner }: RuleScope, phone: string): Promise<DoNotCallEntry> {
  const where = { accountId: owner.accountId ?? '', partnerId: owner.partnerId };
  const entries = await ports.stores.protection.findBlocking(where, phone, ports.clock.now());
  const entry = entries.find(({ scope }) => scope.id === id);
  if (!entry) throw new Problem('not-found', `${phone} isn't on the do-not-call list of ${kind} ${name}.`);
  return entry;
}

function parsePhone(text: string): string {
  const read = readPhone(text, { country: undefined, accept: 'possible' });
  if ('reason' in read) throw new Problem('invalid', `PHONE: ${read.reason}`);
  return read.phone;
}

async function runList({ ports, output }: AdminContext, options: ScopeOptions & { search?: string; after?: string }): Promise<void> {
  const { owner } = await findScope(ports, options, kinds);
  const access: ProtectionAccess =
    owner.accountId === null ? { kind: 'partner', partnerId: owner.partnerId } : { kind: 'account', accountId: owner.accountId };
  const { items, nextCursor } = await listPage(ports, access, options.search ?? '', options.after ?? null);
  const rows = items.map(({ phone, reason, scope, createdBy, createdAt, endsAt }) => [
    ...[
      phone,
      reason,
      shortName(scope.name),
      shortName(createdBy?.name ?? ''),
      timestamp(createdAt),
      endsAt === null ? '' : timestamp(endsAt),
    ],
  ]);
  const more = nextCursor === null ? '' : `\nThere are more. Continue with --after ${nextCursor}`;
  const head = ['NUMBER', 'REASON', 'FOR', 'ADDED BY', 'ADDED', 'ENDS'];
  output.answer({ entries: items.map(entryJson), nextCursor }, `${table(head, rows)}${more}`);
}

export function entryJson({ createdAt, endsAt, ...entry }: DoNotCallEntry) {
  return { ...entry, createdAt: timestamp(createdAt), endsAt: endsAt && timestamp(endsAt) };
}

/** The number of invalid lines that a terminal shows. */
const maxShownLines = 20;

/** @returns whether everything was imported */
async function runImport(context: AdminContext, path: string, options: ScopeOptions & { country?: string }): Promise<boolean> {
  const { ports, actor, output } = context;
  const { owner, kind, name } = await findScope(ports, options, kinds);
  const country =
    options.country === undefined
      ? undefined
      : parseInput(countrySchema.refine(isCountry, notACountry), options.country.toUpperCase(), '--country');
  const entry = { owner, reason: 'imported' as const, note: null, source: 'admin' as const, call: null, createdBy: null };
  const now = ports.clock.now();
  const file = await openFile(context.resolveFile(path));
  const job = { lines: readLines(file), country, entry: { ...entry, createdAt: now, endsAt: null } };
  const result = await importNumbers(ports, ports.stores.numberImports, actor, job, setTimeout).finally(() => file.close());
  const { added, known, wrong, invalidLines } = result;
  const lines =
    invalidLines === 0
      ? [`Imported ${counted(added, 'number')} for ${kind} ${name}. Already on the list: ${known}.`]
      : [
          ...wrong.slice(0, maxShownLines).map(({ line, message }) => `line ${line}: ${message}`),
          ...(invalidLines > maxShownLines
            ? [`and ${counted(invalidLines - maxShownLines, 'more invalid line')}. To see them, add --json.`]
            : []),
          `Nothing was imported, because ${counted(invalidLines, 'line')} ${invalidLines === 1 ? 'is' : 'are'} invalid.`,
        ];
  output.answer({ added, known, wrong, ...(invalidLines > wrong.length && { wrongLines: invalidLines }) }, lines.join('\n'));
  return invalidLines === 0;
}

/** Starts reading only when the lines are iterated, because readline drops lines that arrive before that. */
async function* readLines(file: FileHandle): AsyncGenerator<string> {
  yield* file.readLines();
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    const file = await open(path);
    if (!(await file.stat()).isDirectory()) return file;
    await file.close();
    throw new Error('it is a folder');
  } catch (error) {
    throw new Problem('invalid', oneLine(`Couldn't read ${path}: ${error instanceof Error ? error.message : String(error)}.`));
  }
}
