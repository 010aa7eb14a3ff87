import { type Command, Option } from 'commander';
import { type OptOutScope, optOutScopes } from '#contract/protection/protection.ts';
import { createAccount, createCampaign, createPartner, deleteManaged } from '../domain/directory/directory.ts';
import { setOptOuts } from '../domain/protection/rules.ts';
import { type AdminContext, nameSchema, parseInput, type Runner, shortName, table, withExamples } from './command-line.ts';
import { findScope } from './rules.ts';

export function partnerCommands(program: Command, { withDatabase }: Runner): void {
  const partner = program.command('partner').description('manage partners: resellers that own accounts');
  const create = partner.command('create').alias('add').argument('<name>').description('create a partner');
  withExamples(create, 'partner create "Northwind Voice"').action(withDatabase(runCreatePartner, 'fill'));
  deleteCommand(partner, 'partner', '01a20138-3d19-7da7-9907-3a9fb48fa32a', withDatabase);
  const list = partner.command('list').description('list all partners');
  withExamples(list, 'partner list', '--json partner list').action(withDatabase(runListPartners));
}

async function runCreatePartner({ ports, caller, output }: AdminContext, text: string): Promise<void> {
  const { id, name } = await createPartner(ports, caller, parseInput(nameSchema, text, 'NAME'));
  output.answer({ partner: { id, name } }, `Created partner ${name}: ${id}`);
}

async function runListPartners({ ports, output }: AdminContext): Promise<void> {
  const partners = await ports.stores.tenancies.allPartners();
  const rows = partners.map(({ id, name, externalId }) => [id, shortName(name), externalId ?? '']);
  output.answer({ partners }, table(['ID', 'NAME', 'EXTERNAL ID'], rows));
}

export function accountCommands(program: Command, { withDatabase }: Runner): void {
  const account = program.command('account').description('manage accounts: customers that belong to a partner and own campaigns');
  const create = account
    .command('create')
    .alias('add')
    .argument('<name>')
    .requiredOption('--partner <id>', 'ID of the partner that owns the account')
    .description('create an account');
  withExamples(create, 'account create "Harbour Dental" --partner 01a20138-3d19-7da7-9907-3a9fb48fa32a').action(
    withDatabase(runCreateAccount, 'fill'),
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
  withExamples(list, 'account list', '--json account list').action(withDatabase(runListAccounts));
}

async function runCreateAccount({ ports, caller, output }: AdminContext, text: string, options: { partner: string }): Promise<void> {
  const partner = await findScope(ports, options, ['partner']);
  const { id, name } = await createAccount(ports, caller, parseInput(nameSchema, text, 'NAME'), partner.id);
  output.answer({ account: { id, name, partnerId: partner.id } }, `Created account ${name}: ${id}`);
}

async function runOptOuts({ ports, caller, output }: AdminContext, id: string, options: { for: OptOutScope }): Promise<void> {
  const account = await findScope(ports, { account: id }, ['account']);
  await setOptOuts(ports, caller, account.id, options.for);
  const who = options.for === 'partner' ? 'all accounts of its partner' : 'this account only';
  output.answer({ optOuts: { listedFor: options.for } }, `Opt-outs during calls from account ${account.name} now apply to ${who}.`);
}

async function runListAccounts({ ports, output }: AdminContext): Promise<void> {
  const accounts = await ports.stores.tenancies.allAccounts();
  const json = accounts.map(({ partner, ...account }) => ({ ...account, partnerId: partner.id }));
  const rows = accounts.map(({ id, name, partner, externalId }) => [id, shortName(name), shortName(partner.name), externalId ?? '']);
  output.answer({ accounts: json }, table(['ID', 'NAME', 'PARTNER', 'EXTERNAL ID'], rows));
}

export function campaignCommands(program: Command, { withDatabase }: Runner): void {
  const campaign = program.command('campaign').description('manage the campaigns of an account');
  const create = campaign
    .command('create')
    .alias('add')
    .argument('<name>')
    .requiredOption('--account <id>', 'ID of the account that owns the campaign')
    .description('create a campaign');
  withExamples(create, 'campaign create "Appointment reminders" --account 01a20138-3d19-7da7-9907-3a9fb48fa32a').action(
    withDatabase(runCreateCampaign, 'fill'),
  );
  deleteCommand(campaign, 'campaign', '01a20138-3d19-7da7-9907-3a9fb48fa32a', withDatabase);
  const list = campaign.command('list').description('list all campaigns');
  withExamples(list, 'campaign list', '--json campaign list').action(withDatabase(runListCampaigns));
}

async function runCreateCampaign({ ports, caller, output }: AdminContext, text: string, options: { account: string }): Promise<void> {
  const account = await findScope(ports, options, ['account']);
  const { id, name } = await createCampaign(ports, caller, parseInput(nameSchema, text, 'NAME'), account.id);
  output.answer({ campaign: { id, name, accountId: account.id } }, `Created campaign ${name}: ${id}`);
}

async function runListCampaigns({ ports, output }: AdminContext): Promise<void> {
  const campaigns = await ports.stores.tenancies.allCampaigns();
  const json = campaigns.map(({ account, ...campaign }) => ({ ...campaign, accountId: account.id }));
  const rows = campaigns.map(({ id, name, account, externalId }) => [id, shortName(name), shortName(account.name), externalId ?? '']);
  output.answer({ campaigns: json }, table(['ID', 'NAME', 'ACCOUNT', 'EXTERNAL ID'], rows));
}

type Kind = 'partner' | 'account' | 'campaign';

const condition: Readonly<Record<Kind, string>> = {
  partner: 'no accounts, users, API keys or do-not-call numbers',
  account: 'no campaigns, users, API keys or do-not-call numbers',
  campaign: 'no calls',
};

/** Adds the command that deletes a partner, account or campaign. */
function deleteCommand(parent: Command, kind: Kind, exampleId: string, withDatabase: Runner['withDatabase']): void {
  const command = parent
    .command('delete')
    .argument('<id>')
    .description(`delete ${kind === 'account' ? 'an' : 'a'} ${kind} that has ${condition[kind]}`);
  withExamples(command, `${kind} delete ${exampleId}`).action(
    withDatabase((context: AdminContext, id: string) => runDelete(context, kind, id)),
  );
}

async function runDelete({ ports, caller, output }: AdminContext, kind: Kind, id: string): Promise<void> {
  await findScope(ports, { [kind]: id }, [kind]);
  const { name } = await deleteManaged(ports, caller, kind, id);
  output.answer({ deleted: { kind, id, name } }, `Deleted ${kind} ${name}: ${id}`);
}
