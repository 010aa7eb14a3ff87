import type { Command } from 'commander';
import { operator } from '../domain/audit.ts';
import { createCampaign } from '../domain/tenancies.ts';
import type { AdminContext, Runner } from './context.ts';
import { nameSchema, parseInput } from './input.ts';

export function campaignCommands(program: Command, { withDatabase }: Runner): void {
  const campaign = program.command('campaign').description('campaigns of an account');
  campaign
    .command('create')
    .alias('add')
    .argument('<name>')
    .requiredOption('--account <id>', 'the account that it belongs to')
    .description('create a campaign')
    .action(withDatabase(runCreate, 'fill'));
}

async function runCreate({ ports, output }: AdminContext, name: string, options: { account: string }): Promise<void> {
  const campaign = await createCampaign(ports, operator, parseInput(nameSchema, name, 'NAME'), options.account);
  output.answer({ campaign }, `Created the campaign ${campaign.name}: ${campaign.id}`);
}
