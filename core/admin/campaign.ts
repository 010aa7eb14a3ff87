import type { Command } from 'commander';
import { createCampaign } from '../domain/directory/directory.ts';
import { deleteCommand } from './directory.ts';
import type { AdminContext, Runner } from './program/context.ts';
import { withExamples } from './program/help.ts';
import { nameSchema, parseInput } from './program/input.ts';
import { shortName, table } from './program/table.ts';

export function campaignCommands(program: Command, { withDatabase }: Runner): void {
  const campaign = program.command('campaign').description('manage the campaigns of an account');
  const create = campaign
    .command('create')
    .alias('add')
    .argument('<name>')
    .requiredOption('--account <id>', 'ID of the account that owns the campaign')
    .description('create a campaign');
  withExamples(create, 'campaign create "Appointment reminders" --account 01a20138-3d19-7da7-9907-3a9fb48fa32a').action(
    withDatabase(runCreate, 'fill'),
  );
  deleteCommand(campaign, 'campaign', '01a20138-3d19-7da7-9907-3a9fb48fa32a', withDatabase);
  const list = campaign.command('list').description('list all campaigns');
  withExamples(list, 'campaign list', '--json campaign list').action(withDatabase(runList));
}

async function runCreate({ ports, actor, output }: AdminContext, name: string, options: { account: string }): Promise<void> {
  const campaign = await createCampaign(ports, actor, parseInput(nameSchema, name, 'NAME'), options.account);
  output.answer({ campaign }, `Created campaign ${campaign.name}: ${campaign.id}`);
}

async function runList({ ports, output }: AdminContext): Promise<void> {
  const campaigns = await ports.stores.tenancies.allCampaigns();
  const json = campaigns.map(({ account, ...campaign }) => ({ ...campaign, accountId: account.id }));
  const rows = campaigns.map(({ id, name, account, externalId }) => [id, shortName(name), shortName(account.name), externalId ?? '']);
  output.answer({ campaigns: json }, table(['ID', 'NAME', 'ACCOUNT', 'EXTERNAL ID'], rows));
}
