import type { Command } from 'commander';
import { operator } from '../domain/audit.ts';
import { createAccount } from '../domain/tenancies.ts';
import type { AdminContext, Runner } from './context.ts';
import { nameSchema, parseInput } from './input.ts';

export function accountCommands(program: Command, { withDatabase }: Runner): void {
  const account = program.command('account').description('customers, who belong to a partner and own campaigns');
  account
    .command('create')
    .alias('add')
    .argument('<name>')
    .requiredOption('--partner <id>', 'the partner that it belongs to')
    .description('create an account')
    .action(withDatabase(runCreate, 'fill'));
}

async function runCreate({ ports, output }: AdminContext, name: string, options: { partner: string }): Promise<void> {
  const account = await createAccount(ports, operator, parseInput(nameSchema, name, 'NAME'), options.partner);
  output.answer({ account }, `Created the account ${account.name}: ${account.id}`);
}
