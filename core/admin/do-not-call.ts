import type { Command } from 'commander';
import { z } from 'zod';
import { endOfDay } from '#contract/calendar.ts';
import { readPhone } from '#contract/calls/phone.ts';
import type { OpenFile } from '#contract/files/open-file.ts';
import { openPhoneList, type PhoneList } from '#contract/files/phone-list.ts';
import { openText, UnreadableFile } from '#contract/files/text-file.ts';
import { type DoNotCallReason, doNotCallReasonSchema } from '#contract/protection/do-not-call.ts';
import { countrySchema } from '#contract/protection/numbers.ts';
import { counted } from '#contract/text/count.ts';
import { timestamp } from '#contract/text/text.ts';
import type { DoNotCallEntry, Ports, ProtectionAccess, RuleScope } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { addNumbers, findNumbers, importNumbers, liftNumber, type NumberImportResult } from '../domain/protection/do-not-call.ts';
import { isCountry, notACountry } from '../domain/protection/numbers.ts';
import {
  type AdminContext,
  exampleAccount,
  nameSchema,
  type Output,
  parseInput,
  type Runner,
  shortName,
  table,
  withExamples,
} from './command-line.ts';
import { createSkippedLines, openInput } from './files.ts';
import { findScope, ownerKinds, type ScopeOptions, withScope } from './rules.ts';

export function doNotCallCommands(program: Command, { withDatabase }: Runner): void {
  const list = program
    .command('do-not-call')
    .description('manage the numbers that an account, or all accounts of a partner, must not call');
  const add = withScope(list.command('add <phone>').description('add a number; queued calls to it end as blocked'), ownerKinds)
    .option('--reason <reason>', 'asked, complaint, wrong-number or imported', 'asked')
    .option('--note <text>', 'a note for administrators')
    .option('--until <date>', 'last day of the entry, in UTC, such as 2027-01-31 (default: never ends)');
  withExamples(add, `do-not-call add +493012345678 ${exampleAccount} --reason complaint`).action(withDatabase(runAdd));
  const remove = withScope(list.command('remove <phone>').description('allow calls to a number again'), ownerKinds).requiredOption(
    '--reason <text>',
    'why it may be called again; kept in the audit log',
  );
  withExamples(remove, `do-not-call remove +493012345678 ${exampleAccount} --reason "Asked for a call"`).action(withDatabase(runRemove));
  const show = withScope(list.command('list').description('list the numbers, newest first'), ownerKinds)
    .option('--search <start>', 'only numbers that start with these digits')
    .option('--after <cursor>', 'continue after the page that returned this nextCursor');
  withExamples(show, `do-not-call list ${exampleAccount}`, `--json do-not-call list ${exampleAccount} --search +4930`).action(
    withDatabase(runList),
  );
  const load = withScope(
    list
      .command('import <file>')
      .description('add all numbers in a file: one on each line, a CSV file with a header, or a list exported from the console'),
    ownerKinds,
  )
    .option('--country <code>', 'country of numbers without a country code, such as DE')
    .option(
      '--column <name>',
      'column with the numbers, repeatable (default: found by its header)',
      (name: string, before: string[] = []) => [...before, name],
    )
    .option(
      '--skip-invalid [file]',
      'import the valid lines, and write the others to a file (default: nothing is imported if a line is invalid)',
    );
  load.addHelpText(
    'after',
    '\nIf a line is invalid, nothing is imported. If the import is interrupted, the numbers added so far stay on the list: run it again to add the others.',
  );
  withExamples(
    load,
    `do-not-call import numbers.csv ${exampleAccount} --country DE`,
    `do-not-call import contacts.csv ${exampleAccount} --column Phone --column Mobile --skip-invalid fix.csv`,
  ).action(withDatabase(runImport));
}

type AddOptions = ScopeOptions & { reason: string; note?: string; until?: string };

async function runAdd({ ports, caller, output }: AdminContext, phone: string, options: AddOptions): Promise<void> {
  const scope = await findScope(ports, options, ownerKinds);
  const number = parsePhone(phone);
  const reason: DoNotCallReason = parseInput(doNotCallReasonSchema, options.reason, '--reason');
  const note = options.note === undefined ? undefined : parseInput(nameSchema, options.note, '--note');
  const untilSchema = z.iso
    .date({ error: 'Must be a date, such as 2027-01-31.' })
    .refine((date) => endOfDay(date, 'UTC') >= ports.clock.now(), { error: 'Must not be in the past.' });
  const until = options.until === undefined ? undefined : parseInput(untilSchema, options.until, '--until');
  const owner = scope.kind === 'account' ? { accountId: scope.id } : { partnerId: scope.id };
  const request = { ...owner, phones: [number], reason, note, until, timeZone: 'UTC' };
  const { added, beingDialed, notValid = 0 } = await addNumbers(ports, caller, request);
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

async function runRemove(
  { ports, caller, output }: AdminContext,
  phone: string,
  options: ScopeOptions & { reason: string },
): Promise<void> {
  const scope = await findScope(ports, options, ownerKinds);
  const number = parsePhone(phone);
  const reason = parseInput(nameSchema, options.reason, '--reason');
  await liftNumber(ports, caller, (await findEntry(ports, scope, number)).id, reason);
  output.answer({ removed: number }, `Removed ${number} from the do-not-call list of ${scope.kind} ${scope.name}.`);
}

async function findEntry(ports: Ports, { id, name, kind, owner }: RuleScope, phone: string): Promise<DoNotCallEntry> {
  const where = { accountId: owner.accountId ?? '', partnerId: owner.partnerId };
  const entries = await ports.stores.doNotCall.findBlocking(where, phone, ports.clock.now());
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
  const { owner } = await findScope(ports, options, ownerKinds);
  const access: ProtectionAccess =
    owner.accountId === null ? { kind: 'partner', partnerId: owner.partnerId } : { kind: 'account', accountId: owner.accountId };
  const { items, nextCursor } = await findNumbers(ports, access, options.search ?? '', options.after ?? null);
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

const maxShownLines = 20;

type ImportOptions = ScopeOptions & { country?: string; column?: string[]; skipInvalid?: string | true };

async function runImport(context: AdminContext, path: string, options: ImportOptions): Promise<boolean> {
  const { ports, caller, output, resolveFile } = context;
  const scope = await findScope(ports, options, ownerKinds);
  const country =
    options.country === undefined
      ? undefined
      : parseInput(countrySchema.refine(isCountry, notACountry), options.country.toUpperCase(), '--country');
  const entry = { owner: scope.owner, reason: 'imported' as const, note: null, source: 'admin' as const, call: null, createdBy: null };
  const file = await openInput(resolveFile(path));
  const skipped = options.skipInvalid === undefined ? null : await createSkippedLines(resolveFile(skippedName(options.skipInvalid, file)));
  try {
    const text = await openText(file);
    const list = openPhoneList(text, options.column ?? [], columnHint);
    const chunks = () => text.chunks();
    const result = await importNumbers(ports, caller.actor, {
      ...{ list, chunks, country, entry: { ...entry, createdAt: ports.clock.now(), endsAt: null } },
      skipped: skipped && { add: ({ text: line }) => skipped.add(list.head, line), save: skipped.save },
    });
    if (result.numbers + result.invalidLines === 0) throw new UnreadableFile(`${path} contains no phone numbers.`);
    const isImported = result.numbers > 0 && (result.invalidLines === 0 || skipped !== null);
    const skippedFile = result.invalidLines > 0 && skipped ? skipped.path : null;
    answerImport(output, scope, list, result, { isImported, skippedFile });
    return isImported;
  } finally {
    await skipped?.close();
    await file.close();
  }
}

const columnHint = 'Add --column NAME, once for each column with numbers. A position such as 2 works, too.';

function skippedName(name: string | true, { path }: OpenFile): string {
  if (name !== true) return name;
  if (path !== null) return path.replace(/(\.[^./\\]*)?$/, '.skipped$1');
  throw new Problem('invalid', '--skip-invalid: specify a file for the skipped lines, because the numbers come from a pipe.');
}

function answerImport(
  output: Output,
  { kind, name }: RuleScope,
  { columns, notes }: PhoneList,
  { added, known, numbers, empty, notValid, wrong, invalidLines, questions }: NumberImportResult,
  { isImported, skippedFile }: { isImported: boolean; skippedFile: string | null },
): void {
  const isAre = (count: number) => (count === 1 ? 'is' : 'are');
  const them = invalidLines === 1 ? 'it' : 'them';
  const lines = [
    ...notes,
    `${columns.length === 1 ? 'Column' : 'Columns'} ${columns.join(', ')}: ${counted(numbers, 'number')}${empty > 0 ? `, ${empty} empty` : ''}.`,
    ...wrong.slice(0, maxShownLines).map(({ line, message }) => `line ${line}: ${message}`),
    ...(invalidLines > maxShownLines
      ? [`and ${counted(invalidLines - maxShownLines, 'more invalid line')}. To see them, add --json.`]
      : []),
    ...(questions > 0 ? [`Put each number on a line of its own, or say which columns to read. ${columnHint}`] : []),
    ...(isImported && notValid > 0
      ? [`${counted(notValid, 'number')} ${isAre(notValid)}n't valid in today's numbering plans, but may be old or new.`]
      : []),
    isImported
      ? `Imported ${counted(added, 'number')} for ${kind} ${name}. Already on the list: ${known}.`
      : numbers === 0
        ? `Nothing was imported, because no line has a valid number.${skippedFile === null ? ` Fix ${them}, and import the file again.` : ''}`
        : `Nothing was imported, because ${counted(invalidLines, 'line')} ${isAre(invalidLines)} invalid. Fix ${them}, or add --skip-invalid.`,
    ...(skippedFile === null
      ? []
      : [`Skipped ${counted(invalidLines, 'invalid line')}. Fix ${them} in ${skippedFile}, and import that file.`]),
  ];
  const json = {
    ...{ added, known, wrong, columns, numbers, empty },
    ...(notValid > 0 && { notValid }),
    ...(invalidLines > wrong.length && { wrongLines: invalidLines }),
    ...(skippedFile !== null && { skippedFile }),
    ...(notes.length > 0 && { notes }),
  };
  output.answer(json, lines.join('\n'));
}
