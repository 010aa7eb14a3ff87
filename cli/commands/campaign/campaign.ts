import type { Context } from '../../context.ts';
import { deleteAlias, readAliases, setAlias } from './campaigns.ts';

/** Gives a campaign a name, for use in every command that accepts one. */
export async function campaignAlias(context: Context, name: string, campaign: string): Promise<void> {
  const campaignId = await setAlias(context, name, campaign);
  context.output.answer({ alias: name, campaignId }, `${name} now refers to campaign ${campaignId}.`);
}

export async function campaignList(context: Context): Promise<void> {
  const aliases = [...(await readAliases(context))];
  const text =
    aliases.map(([name, id]) => `${name}  ${id}`).join('\n') || 'No aliases yet. To create one, run callkey campaign alias NAME ID.';
  context.output.answer({ campaigns: aliases.map(([alias, campaignId]) => ({ alias, campaignId })) }, text);
}

export async function campaignForget(context: Context, name: string): Promise<void> {
  await deleteAlias(context, name);
  context.output.answer({ forgotten: name }, `Removed the alias ${name}.`);
}
