import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '#contract/text/json.ts';
import { CallkeyError } from '../../client/errors.ts';
import { type Context, loadSettings } from '../../context.ts';
import { checkedCampaign } from '../../identifiers.ts';
import { readIfExists, writeDurably } from '../../state/durable-file.ts';
import type { Folders } from '../../state/xdg.ts';

/** Aliases for campaign IDs. Each profile has its own, since its server may have other campaigns. */
const aliasesSchema = z.record(z.string(), z.record(z.string(), z.string()));
/** The campaign IDs by alias. */
type Aliases = Map<string, string>;

/** Aliases are shorter than any campaign ID, so that the two can't be confused. */
const aliasForm = /^[A-Za-z][A-Za-z0-9-]{0,31}$/;

/**
 * Returns the ID of the campaign that a command is about.
 *
 * @param campaign an ID or an alias; undefined means CALLKEY_CAMPAIGN
 * @throws CallkeyError `usage`
 */
export async function resolveCampaign(context: Context, campaign: string | undefined): Promise<string> {
  const text = (campaign ?? context.environment['CALLKEY_CAMPAIGN'])?.trim();
  if (!text) throw new CallkeyError('usage', 'No campaign specified. Pass a campaign ID or alias, or set CALLKEY_CAMPAIGN.');
  const aliases = aliasForm.test(text) ? await readAliases(context) : undefined;
  return checkedCampaign(aliases?.get(text) ?? text);
}

/** Returns the aliases of the current profile. */
export async function readAliases(context: Context): Promise<Aliases> {
  const { profileName } = await loadSettings(context);
  return (await readAll(context.folders)).get(profileName) ?? new Map();
}

/** Stores an alias. @param campaign an ID or another alias @returns the ID @throws CallkeyError `usage` */
export async function setAlias(context: Context, name: string, campaign: string): Promise<string> {
  if (!aliasForm.test(name))
    throw new CallkeyError('usage', `"${name}" isn't a valid alias. Start with a letter, and use up to 32 letters, digits and dashes.`);
  const campaignId = await resolveCampaign(context, campaign);
  await change(context, (aliases) => aliases.set(name, campaignId));
  return campaignId;
}

/** @throws CallkeyError `notFound` */
export async function deleteAlias(context: Context, name: string): Promise<void> {
  await change(context, (aliases) => {
    if (!aliases.delete(name)) throw new CallkeyError('notFound', `No alias "${name}". List them with: callkey campaign list`);
  });
}

const aliasesFile = (folders: Folders) => join(folders.config, 'campaigns.json');

async function change(context: Context, changeAliases: (aliases: Aliases) => void): Promise<void> {
  const { profileName } = await loadSettings(context);
  const all = await readAll(context.folders);
  const aliases = all.get(profileName) ?? new Map();
  changeAliases(aliases);
  all.set(profileName, aliases);
  const stored = Object.fromEntries([...all].map(([profile, named]) => [profile, Object.fromEntries(named)]));
  await writeDurably(
    aliasesFile(context.folders),
    `${JSON.stringify(stored, undefined, 2)}\n`,
    "You can use the campaign's ID instead of an alias.",
  );
}

/** Reads the aliases of all profiles. */
async function readAll(folders: Folders): Promise<Map<string, Aliases>> {
  const text = await readIfExists(aliasesFile(folders));
  if (text === undefined) return new Map();
  const parsed = aliasesSchema.safeParse(parseJson(text));
  if (parsed.success) return new Map(Object.entries(parsed.data).map(([profile, aliases]) => [profile, new Map(Object.entries(aliases))]));
  throw new CallkeyError('usage', `Couldn't read ${aliasesFile(folders)}: it isn't a valid alias file. Fix it or delete it.`);
}
