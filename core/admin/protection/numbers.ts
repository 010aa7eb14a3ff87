import type { Command } from 'commander';
import { z } from 'zod';
import { countrySchema, type NumberRules, restrictedKinds } from '#contract/protection/numbers.ts';
import { Problem } from '../../domain/problem.ts';
import { readNumberRules, setNumberRules } from '../../domain/protection/rules.ts';
import type { AdminContext, Runner } from '../program/context.ts';
import { withExamples } from '../program/help.ts';
import { parseInput } from '../program/input.ts';
import { findScope, type ScopeOptions, withScope } from './scope.ts';

const kinds = ['account', 'partner'] as const;
const account = '--account 01a20138-3d19-7da7-9907-3a9fb48fa32a';

export function numbersCommands(program: Command, { withDatabase }: Runner): void {
  const numbers = program.command('numbers').description('manage which countries and kinds of numbers may be called');
  const set = withScope(
    numbers.command('set').description('change which numbers an account, or all accounts of a partner, may call'),
    kinds,
  )
    .option('--countries <codes>', 'country codes, such as DE,AT; or "all", or "inherit"')
    .option(
      '--kinds <kinds>',
      `kinds of numbers to allow, of those refused by default (${restrictedKinds.join(',')}); or "none", or "inherit"`,
    );
  withExamples(set, `numbers set ${account} --countries DE,AT --kinds none`).action(withDatabase(runSet));
  const show = withScope(numbers.command('show').description('show which numbers an account or partner may call'), kinds);
  withExamples(show, `numbers show ${account}`).action(withDatabase(runShow));
}

type SetOptions = ScopeOptions & { countries?: string; kinds?: string };

async function runSet(context: AdminContext, options: SetOptions): Promise<void> {
  const { ports, actor } = context;
  const scope = await findScope(ports, options, kinds);
  const change: Partial<NumberRules> = {
    ...(options.countries !== undefined && { countries: readList(options.countries, 'all', z.array(countrySchema), '--countries') }),
    ...(options.kinds !== undefined && { kinds: readList(options.kinds, 'none', z.array(z.enum(restrictedKinds)), '--kinds') }),
  };
  if (Object.keys(change).length === 0) throw new Problem('invalid', 'Specify --countries or --kinds.');
  await setNumberRules(ports, actor, scope, change);
  await runShow(context, options);
}

/** Parses a comma-separated list. `empty` is the word for an empty list, and `inherit` removes the scope's own setting. */
function readList<Item>(text: string, empty: string, schema: z.ZodType<Item[]>, option: string): Item[] | null {
  if (text === 'inherit') return null;
  if (text === empty) return [];
  const items = text.split(',').map((item) => item.trim());
  return parseInput(schema, option === '--countries' ? items.map((item) => item.toUpperCase()) : items, option);
}

async function runShow({ ports, output }: AdminContext, options: ScopeOptions): Promise<void> {
  const scope = await findScope(ports, options, kinds);
  const numbers = await readNumberRules(ports, scope);
  const { countries, kinds: allowed } = numbers.effective;
  const lines = [
    `Countries: ${countries.length === 0 ? 'all' : countries.join(', ')}${numbers.countries === null ? ' (inherited)' : ''}`,
    `Kinds allowed in addition to ordinary numbers: ${allowed.length === 0 ? 'none' : allowed.join(', ')}${numbers.kinds === null ? ' (inherited)' : ''}`,
  ];
  output.answer({ numbers }, lines.join('\n'));
}
