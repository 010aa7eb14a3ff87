import { join } from 'node:path';
import { z } from 'zod';
import { readServerAddress } from '#contract/server-address.ts';
import { parseJson } from '#contract/text/json.ts';
import { isIdentifier } from '#contract/text/text.ts';
import { CallkeyError, usageError } from '../client/errors.ts';
import type { Timing } from '../client/timing.ts';
import { inTurn, readIfExists, writeDurably } from '../state/durable-file.ts';
import type { Environment, Folders } from '../state/folders.ts';
import { shellCommand } from '../terminal/help.ts';

/** The options that every command takes. */
export type GlobalOptions = { profile?: string; server?: string; state?: string; timeout?: number; json?: true; verbose?: true };

/** Where settings come from. */
export type SettingsSource = { options: GlobalOptions; environment: Environment; folders: Folders };
/** Commands that change the same settings wait for each other. */
type Changing = SettingsSource & { timing: Timing };

const keyLocations = ['keychain', 'file'] as const;
/** Where a profile's key is stored. */
export type KeyLocation = (typeof keyLocations)[number];

const profileSchema = z.object({ server: z.string(), key: z.enum(keyLocations) });
export type Profile = z.infer<typeof profileSchema>;
/** By name. */
type Profiles = Map<string, Profile>;
/** Aliases for campaign IDs, by profile, since another profile's server may have other campaigns. */
type Aliases = Map<string, Map<string, string>>;

/** Options override the environment, which overrides the stored profile. */
export type Settings = {
  profileName: string;
  profile: Profile | undefined;
  /** The server's address without a trailing slash; null if it isn't set anywhere. */
  server: string | null;
};

/** @throws CallkeyError `usage` */
export async function readSettings({ options, environment, folders }: SettingsSource): Promise<Settings> {
  const profileName = options.profile ?? (environment['CALLKEY_PROFILE'] || 'default');
  // In a JSON object, __proto__ would be lost.
  if (!/^(?!__proto__$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/.test(profileName)) {
    throw usageError(
      `"${profileName}" isn't a valid profile name. Choose another one, with up to 64 letters, digits, dots, dashes and underscores.`,
    );
  }
  const profile = (await readProfiles(folders)).get(profileName);
  const server = options.server ?? (environment['CALLKEY_SERVER'] || (profile?.server ?? null));
  return { profileName, profile, server: server === null ? null : checkedServer(server) };
}

/** @throws CallkeyError `usage` */
export function requireServer({ server }: Settings): string {
  if (server !== null) return server;
  throw usageError(
    'No server address specified. Add --server https://…, set CALLKEY_SERVER, or run callkey key set --server https://… to store one with the key.',
  );
}

/** @throws CallkeyError `usage` if the key would be sent unencrypted or the text isn't a valid address */
export function checkedServer(text: string): string {
  const read = readServerAddress(text);
  if (!read.ok) throw usageError(read.problem);
  return read.address;
}

/** Advice for when a key can't be stored. */
export const storageAdvice =
  'Or set CALLKEY_SERVER and either CALLKEY_API_KEY or CALLKEY_API_KEY_FILE, so that nothing needs to be stored.';

const profilesFile = (folders: Folders) => join(folders.config, 'profiles.json');

export async function readProfiles(folders: Folders): Promise<Profiles> {
  const path = profilesFile(folders);
  const advice = "it isn't a valid profile file. Fix it, or delete it and run callkey key set to store your keys again.";
  return new Map(Object.entries((await readJson(path, z.record(z.string(), profileSchema), advice)) ?? {}));
}

export function changeProfiles(
  { folders, timing }: Pick<Changing, 'folders' | 'timing'>,
  change: (profiles: Profiles) => unknown,
): Promise<void> {
  return changeJson(profilesFile(folders), timing, storageAdvice, async () => {
    const profiles = await readProfiles(folders);
    change(profiles);
    return Object.fromEntries(profiles);
  });
}

/** Aliases are shorter than any campaign ID, so that the two can't be confused. */
const aliasForm = /^[A-Za-z][A-Za-z0-9-]{0,31}$/;

/**
 * Returns the ID of the campaign that a command is about. The ID is checked before anything is sent, since a text such as two dots would
 * change the request path. Like keys, it may have spaces or a line end around it, because files and variables from Windows end in CR LF.
 *
 * @param campaign an ID or an alias; undefined means CALLKEY_CAMPAIGN
 * @throws CallkeyError `usage`
 */
export async function resolveCampaign(source: SettingsSource, campaign: string | undefined): Promise<string> {
  const text = (campaign ?? source.environment['CALLKEY_CAMPAIGN'])?.trim();
  if (!text) throw usageError('No campaign specified. Pass a campaign ID or alias, or set CALLKEY_CAMPAIGN.');
  const aliases = aliasForm.test(text) ? await readAliases(source) : undefined;
  const id = (aliases?.get(text) ?? text).trim();
  if (isIdentifier(id)) return id;
  throw usageError(`"${id}" isn't a valid campaign ID. Copy the ID from the console.`);
}

/** Returns the campaign IDs of the current profile by alias. */
export async function readAliases(source: SettingsSource): Promise<Map<string, string>> {
  const { profileName } = await readSettings(source);
  return (await readAllAliases(source.folders)).get(profileName) ?? new Map();
}

/** Stores an alias. @param campaign an ID or another alias @returns the ID @throws CallkeyError `usage` */
export async function setAlias(source: Changing, name: string, campaign: string): Promise<string> {
  if (!aliasForm.test(name))
    throw usageError(`"${name}" isn't a valid alias. Start with a letter, and use up to 32 letters, digits and dashes.`);
  const campaignId = await resolveCampaign(source, campaign);
  await changeAliases(source, (aliases) => aliases.set(name, campaignId));
  return campaignId;
}

/** @throws CallkeyError `notFound` */
export async function deleteAlias(source: Changing, name: string): Promise<void> {
  await changeAliases(source, (aliases) => {
    if (aliases.delete(name)) return;
    const command = shellCommand({ profile: source.options.profile }, 'campaign', 'list');
    throw new CallkeyError('notFound', `No alias "${name}". List them with: ${command}`);
  });
}

const aliasesFile = (folders: Folders) => join(folders.config, 'campaigns.json');

async function changeAliases(source: Changing, change: (aliases: Map<string, string>) => void): Promise<void> {
  const { profileName } = await readSettings(source);
  await changeJson(aliasesFile(source.folders), source.timing, "You can use the campaign's ID instead of an alias.", async () => {
    const all = await readAllAliases(source.folders);
    const aliases = all.get(profileName) ?? new Map();
    change(aliases);
    all.set(profileName, aliases);
    return Object.fromEntries([...all].map(([profile, named]) => [profile, Object.fromEntries(named)]));
  });
}

async function readAllAliases(folders: Folders): Promise<Aliases> {
  const schema = z.record(z.string(), z.record(z.string(), z.string()));
  const stored = (await readJson(aliasesFile(folders), schema, "it isn't a valid alias file. Fix it or delete it.")) ?? {};
  return new Map(Object.entries(stored).map(([profile, aliases]) => [profile, new Map(Object.entries(aliases))]));
}

/** @returns undefined if the file doesn't exist @throws CallkeyError `usage` if it has other content */
async function readJson<Schema extends z.ZodType>(path: string, schema: Schema, advice: string): Promise<z.output<Schema> | undefined> {
  const text = await readIfExists(path);
  if (text === undefined) return undefined;
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw usageError(`Couldn't read ${path}: ${advice}`);
}

/** Reads and replaces a file. Commands that do so at the same time take turns, so that none undoes another's change. */
function changeJson(path: string, timing: Timing, advice: string, read: () => Promise<object>): Promise<void> {
  return inTurn(path, timing, async () => writeDurably(path, `${JSON.stringify(await read(), undefined, 2)}\n`, advice), advice);
}
