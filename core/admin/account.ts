import { type Command, Option } from 'commander';
import { type OptOutScope, optOutScopes } from '#contract/protection/protection.ts';
import { createAccount } from '../domain/directory/directory.ts';
import { setOptOuts } from '../domain/protection/rules.ts';
import { deleteCommand } from './directory.ts';
import type { AdminContext, Runner } from './program/context.ts';
import { withExamples } from './program/help.ts';
import { nameSchema, parseInput } from './program/input.ts';
import { shortName, table } from './program/table.ts';
import { findScope } from './protection/scope.ts';

export function accountCommands(program: Command, { withDatabase }: Runner): void {
  const account = program.command('account').description('manage accounts: customers that belong to a partner and own campaigns');
  const create = account
    .command('create')
    .alias('add')
    .argument('<name>')
    .requiredOption('--partner <id>', 'ID of the partner that owns the account')
    .description('create an account');
  withExamples(create, 'account create "Harbour Dental" --partner 01a20138-3d19-7da7-9907-3a9fb48fa32a').action(
    withDatabase(runCreate, 'fill'),
  );
  const optOuts = account
    .command('opt-outs')
    .argument('<id>')
    .addOption(new Option('--for <scope>', 'where an opt-out applies').choices(optOutScopes).makeOptionMandatory())
    .description(
      "set whether opt-outs during the account's calls apply to this account only (the default) or to all of its partner's accounts",
    );
  withExamples(optOuts, 'account opt-outs 01a20138-3d19-7da7-9907-3a9fb48fa32a --for partner').action(withDatabase(runOptOuts));
  deleteCommand(account, 'account', '01a20138-3d19-7da7-9907-3a9fb48fa32a', withDatabase);
  const list = account.command('list').description('list all accounts');
  withExamples(list, 'account list', '--json account list').action(withDatabase(runList));
}

async function runCreate({ ports, actor, output }: AdminContext, name: string, options: { partner: string }): Promise<void> {
  const account = await createAccount(ports, actor, parseInput(nameSchema, name, 'NAME'), options.partner);
  output.answer({ account }, `Created account ${account.name}: ${account.id}`);
}

async function runOptOuts({ ports, actor, output }: AdminContext, id: string, options: { for: OptOutScope }): Promise<void> {
  const account = await findScope(ports, { account: id }, ['account']);
  await setOptOuts(ports, actor, account, options.for);
  const who = options.for === 'partner' ? 'all accounts of its partner' : 'this account only';
  output.answer({ optOuts: { listedFor: options.for } }, `Opt-outs during calls from account ${account.name} now apply to ${who}.`);
}

async function runList({ ports, output }: AdminContext): Promise<void> {
  const accounts = await ports.stores.tenancies.allAccounts();
  const json = accounts.map(({ partner, ...account }) => ({ ...account, partnerId: partner.id }));
  const rows = accounts.map(({ id, name, partner, externalId }) => [id, shortName(name), shortName(partner.name), externalId ?? '']);
  output.answer({ accounts: json }, table(['ID', 'NAME', 'PARTNER', 'EXTERNAL ID'], rows));
}
