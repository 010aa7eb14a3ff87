import type { Command } from 'commander';
import type { z } from 'zod';
import { type HoursRule, hoursRulesSchema } from '#contract/protection/calling-hours.ts';
import { type NumberRules, numberRulesSchema, restrictedKinds } from '#contract/protection/numbers.ts';
import { type ProtectionScope, protectionScopes } from '#contract/protection/protection.ts';
import { counted } from '#contract/text/count.ts';
import type { Ports, RuleScope } from '../domain/ports.ts';
import { Problem } from '../domain/problem.ts';
import { type Reference, setHours, setNumberRules, showHours, showNumberRules } from '../domain/protection/rules.ts';
import {
  type AdminContext,
  exampleAccount,
  examplePartner,
  oneLine,
  parseInput,
  type Runner,
  table,
  withExamples,
} from './command-line.ts';
import { readJson } from './files.ts';

export function callingHoursCommands(program: Command, { withDatabase }: Runner): void {
  const hours = program.command('calling-hours').description('manage calling hours: when people may be called, in their local time');
  const set = withScope(
    hours
      .command('set <file>')
      .description('replace all rules of a partner, account or campaign with those in a JSON file; [] removes them'),
  );
  withExamples(set, `calling-hours set hours.json ${examplePartner}`).action(withDatabase(runSetHours));
  const list = withScope(hours.command('list').alias('show').description('show the rules of a partner, account or campaign'));
  withExamples(list, `calling-hours list ${examplePartner}`, `--json calling-hours list ${examplePartner}`).action(
    withDatabase(runListHours),
  );
}

async function runSetHours({ ports, caller, output, resolveFile }: AdminContext, path: string, options: ScopeOptions): Promise<void> {
  const scope = await findScope(ports, options);
  const file = resolveFile(path);
  const { rules } = await setHours(ports, caller, toReference(scope), parseInput(hoursRulesSchema, await readJson(file), file));
  const isOpen = rules.length > 0 && !rules.some(({ prefix, days }) => days && prefix === '');
  const lines = [
    rules.length === 0
      ? `Removed the calling hours of ${scope.kind} ${scope.name}.`
      : `Saved ${counted(rules.length, 'rule')} for ${scope.kind} ${scope.name}.`,
    ...(isOpen ? ['Numbers that no rule matches may be called at any time. To change this, add a rule with the prefix "".'] : []),
  ];
  output.answer({ rules }, lines.join('\n'));
}

async function runListHours({ ports, caller, output }: AdminContext, options: ScopeOptions): Promise<void> {
  const scope = await findScope(ports, options);
  const { rules, inherited } = await showHours(ports, caller.viewer, toReference(scope));
  output.answer({ rules, inherited }, describeHours(rules, inherited));
}

function describeHours(rules: readonly HoursRule[], inherited: Awaited<ReturnType<typeof showHours>>['inherited']): string {
  if (rules.length > 0) return rulesTable(rules);
  if (!inherited) return 'No calling hours: people may be called at any time.';
  return `Inherited from ${inherited.from.kind} ${oneLine(inherited.from.name)}:\n${rulesTable(inherited.rules)}`;
}

function rulesTable(rules: readonly HoursRule[]): string {
  const rows = rules.map(({ prefix, days, date, from, to, closed }) => [
    ...[prefix === '' ? 'all' : prefix, days ? days.join(' ') : (date ?? ''), closed ? 'closed' : `${from}-${to}`],
  ]);
  return table(['NUMBERS', 'DAYS', 'HOURS'], rows);
}

/** Number rules and do-not-call lists don't exist for campaigns. */
export const ownerKinds = ['account', 'partner'] as const;

export function numbersCommands(program: Command, { withDatabase }: Runner): void {
  const numbers = program.command('numbers').description('manage which countries and kinds of numbers may be called');
  const set = withScope(
    numbers.command('set').description('change which numbers an account, or all accounts of a partner, may call'),
    ownerKinds,
  )
    .option('--countries <codes>', 'country codes, such as DE,AT; or "all", or "inherit"')
    .option(
      '--kinds <kinds>',
      `kinds of numbers to allow, of those refused by default (${restrictedKinds.join(',')}); or "none", or "inherit"`,
    );
  withExamples(set, `numbers set ${exampleAccount} --countries DE,AT --kinds none`).action(withDatabase(runSetNumbers));
  const show = withScope(numbers.command('show').description('show which numbers an account or partner may call'), ownerKinds);
  withExamples(show, `numbers show ${exampleAccount}`).action(withDatabase(runShowNumbers));
}

async function runSetNumbers(context: AdminContext, options: ScopeOptions & { countries?: string; kinds?: string }): Promise<void> {
  const { ports, caller } = context;
  const scope = await findScope(ports, options, ownerKinds);
  const change: Partial<NumberRules> = {
    ...(options.countries !== undefined && {
      countries: readList(options.countries, 'all', numberRulesSchema.shape.countries, '--countries'),
    }),
    ...(options.kinds !== undefined && { kinds: readList(options.kinds, 'none', numberRulesSchema.shape.kinds, '--kinds') }),
  };
  if (Object.keys(change).length === 0) throw new Problem('invalid', 'Specify --countries or --kinds.');
  await setNumberRules(ports, caller, toReference(scope), change);
  await runShowNumbers(context, options);
}

/** Parses a comma-separated list. `empty` is the word for an empty list, and `inherit` removes the scope's own setting. */
function readList<Item>(text: string, empty: string, schema: z.ZodType<Item[] | null>, option: string): Item[] | null {
  if (text === 'inherit') return null;
  if (text === empty) return [];
  const items = text.split(',').map((item) => item.trim());
  return parseInput(schema, option === '--countries' ? items.map((item) => item.toUpperCase()) : items, option);
}

async function runShowNumbers({ ports, caller, output }: AdminContext, options: ScopeOptions): Promise<void> {
  const reference = toReference(await findScope(ports, options, ownerKinds));
  const { scope, version, ...numbers } = await showNumberRules(ports, caller.viewer, reference);
  const { countries, kinds: allowed } = numbers.effective;
  const lines = [
    `Countries: ${countries.length === 0 ? 'all' : countries.join(', ')}${numbers.countries === null ? ' (inherited)' : ''}`,
    `Kinds allowed in addition to ordinary numbers: ${allowed.length === 0 ? 'none' : allowed.join(', ')}${numbers.kinds === null ? ' (inherited)' : ''}`,
  ];
  output.answer({ numbers }, lines.join('\n'));
}

export type ScopeOptions = { account?: string; partner?: string; campaign?: string };

export function withScope(command: Command, kinds: readonly ProtectionScope[] = protectionScopes): Command {
  for (const kind of kinds) command.option(`--${kind} <id>`, `ID of the ${kind}`);
  return command;
}

/** Finds the scope that the options select. @throws Problem `invalid` unless there's exactly one option, or `not-found` */
export async function findScope(
  ports: Ports,
  options: ScopeOptions,
  kinds: readonly ProtectionScope[] = protectionScopes,
): Promise<RuleScope> {
  const chosen = kinds.filter((kind) => options[kind] !== undefined);
  const [kind] = chosen;
  if (kind === undefined || chosen.length > 1)
    throw new Problem('invalid', `Specify exactly one of ${kinds.map((each) => `--${each}`).join(', ')}.`);
  const id = options[kind] ?? '';
  const scope = await ports.stores.rules.findScope({ kind: 'all' }, kind, id);
  if (!scope) throw new Problem('not-found', `The ${kind} ${id} doesn't exist.`);
  return scope;
}

export function toReference({ kind, id }: RuleScope): Reference {
  return { scope: kind, id };
}
