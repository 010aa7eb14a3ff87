import type { Command } from 'commander';
import { type HoursRule, hoursRulesSchema } from '#contract/protection/calling-hours.ts';
import { counted } from '#contract/text/count.ts';
import { readHours, setHours } from '../../domain/protection/rules.ts';
import type { AdminContext, Runner } from '../program/context.ts';
import { readJson } from '../program/files.ts';
import { withExamples } from '../program/help.ts';
import { parseInput } from '../program/input.ts';
import { oneLine } from '../program/output.ts';
import { table } from '../program/table.ts';
import { findScope, type ScopeOptions, withScope } from './scope.ts';

const kinds = ['partner', 'account', 'campaign'] as const;
const partner = '--partner 01a20138-3d19-7da7-9907-3a9fb48fa32a';

export function callingHoursCommands(program: Command, { withDatabase }: Runner): void {
  const hours = program.command('calling-hours').description('manage calling hours: when people may be called, in their local time');
  const set = withScope(
    hours
      .command('set')
      .argument('<file>')
      .description('replace all rules of a partner, account or campaign with those in a JSON file; [] removes them'),
    kinds,
  );
  withExamples(set, `calling-hours set hours.json ${partner}`).action(withDatabase(runSet));
  const list = withScope(hours.command('list').alias('show').description('show the rules of a partner, account or campaign'), kinds);
  withExamples(list, `calling-hours list ${partner}`, `--json calling-hours list ${partner}`).action(withDatabase(runList));
}

async function runSet({ ports, actor, output, resolveFile }: AdminContext, path: string, options: ScopeOptions): Promise<void> {
  const scope = await findScope(ports, options, kinds);
  const file = resolveFile(path);
  const rules = parseInput(hoursRulesSchema, await readJson(file), file);
  await setHours(ports, actor, scope, rules);
  const isOpen = rules.length > 0 && !rules.some(({ prefix, days }) => days && prefix === '');
  const lines = [
    rules.length === 0
      ? `Removed the calling hours of ${scope.kind} ${scope.name}.`
      : `Saved ${counted(rules.length, 'rule')} for ${scope.kind} ${scope.name}.`,
    ...(isOpen ? ['Numbers that no rule matches may be called at any time. To change this, add a rule with the prefix "".'] : []),
  ];
  output.answer({ rules }, lines.join('\n'));
}

async function runList({ ports, output }: AdminContext, options: ScopeOptions): Promise<void> {
  const scope = await findScope(ports, options, kinds);
  const { rules, inherited } = await readHours(ports, scope);
  const from = inherited && { kind: inherited.from.kind, id: inherited.from.id, name: inherited.from.name };
  const json = { rules, inherited: inherited && { from, rules: inherited.rules } };
  output.answer(json, describe(rules, inherited));
}

function describe(rules: readonly HoursRule[], inherited: Awaited<ReturnType<typeof readHours>>['inherited']): string {
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
