import type { Command } from 'commander';
import type { Context, WithContext } from '../connection/context.ts';
import { examples, shellCommand } from '../terminal/help.ts';

// Loaded when a command runs, because help doesn't need it.
const loadSettings = () => import('../connection/settings.ts');

export function addCampaign(program: Command, withContext: WithContext): void {
  const campaign = program.command('campaign').description('manage aliases for campaign IDs');
  campaign
    .command('alias')
    .argument('<name>', 'alias for the campaign')
    .argument('<campaign>', 'campaign ID')
    .description('create an alias that every command accepts instead of the campaign ID')
    .addHelpText('after', examples('callkey campaign alias reminders CAMPAIGN', 'callkey call place reminders --phone +493012345678'))
    .action((name: string, id: string) => withContext((context) => createAlias(context, name, id)));
  campaign
    .command('list')
    .description('list aliases')
    .action(() => withContext(listAliases));
  campaign
    .command('forget')
    .argument('<name>', 'alias to remove')
    .description('remove an alias, without changing the campaign')
    .action((name: string) => withContext((context) => forgetAlias(context, name)));
}

/** Gives a campaign a name, for use in every command that accepts one. */
async function createAlias(context: Context, name: string, campaign: string): Promise<void> {
  const campaignId = await (await loadSettings()).setAlias(context, name, campaign);
  context.output.answer({ alias: name, campaignId }, `${name} now refers to campaign ${campaignId}.`);
}

async function listAliases(context: Context): Promise<void> {
  const aliases = [...(await (await loadSettings()).readAliases(context))];
  const create = shellCommand({ profile: context.options.profile }, 'campaign', 'alias', 'NAME', 'ID');
  const text = aliases.map(([name, id]) => `${name}  ${id}`).join('\n') || `No aliases yet. To create one, run ${create}.`;
  context.output.answer({ campaigns: aliases.map(([alias, campaignId]) => ({ alias, campaignId })) }, text);
}

async function forgetAlias(context: Context, name: string): Promise<void> {
  await (await loadSettings()).deleteAlias(context, name);
  context.output.answer({ forgotten: name }, `Removed the alias ${name}.`);
}
