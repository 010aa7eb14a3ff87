import { join } from 'node:path';
import { z } from 'zod';
import { readServerAddress } from '#contract/server-address.ts';
import { parseJson } from '#contract/text/json.ts';
import { CallkeyError } from './client/errors.ts';
import { readIfExists, writeDurably } from './state/durable-file.ts';
import type { Environment, Folders } from './state/xdg.ts';

/** The options that every command takes. */
export type GlobalOptions = { profile?: string; server?: string; state?: string; timeout?: number; json?: true; verbose?: true };

const keyLocations = ['keychain', 'file'] as const;
/** Where a profile's key is stored. */
export type KeyLocation = (typeof keyLocations)[number];

const profileSchema = z.object({ server: z.string().nullable(), key: z.enum(keyLocations) });
const profilesSchema = z.record(z.string(), profileSchema);
export type Profile = z.infer<typeof profileSchema>;
type Profiles = Map<string, Profile>;

/** Options override the environment, which overrides the stored profile. */
export type Settings = {
  profileName: string;
  profile: Profile | undefined;
  /** The server's address without a trailing slash; null if it isn't set anywhere. */
  server: string | null;
};

/** @throws CallkeyError `usage` */
export async function readSettings(options: GlobalOptions, environment: Environment, folders: Folders): Promise<Settings> {
  const profileName = options.profile ?? (environment['CALLKEY_PROFILE'] || 'default');
  // In a JSON object, __proto__ would be lost.
  if (!/^(?!__proto__$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/.test(profileName)) {
    throw new CallkeyError(
      'usage',
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
  throw new CallkeyError(
    'usage',
    'No server address specified. Add --server https://…, set CALLKEY_SERVER, or run callkey key set --server https://… to store one with the key.',
  );
}

export async function listProfiles(folders: Folders): Promise<string[]> {
  return [...(await readProfiles(folders)).keys()];
}

export async function storeProfile(folders: Folders, name: string, profile: Profile): Promise<void> {
  await writeProfiles(folders, (await readProfiles(folders)).set(name, profile));
}

export async function deleteProfile(folders: Folders, name: string): Promise<void> {
  const profiles = await readProfiles(folders);
  if (profiles.delete(name)) await writeProfiles(folders, profiles);
}

const profilesFile = (folders: Folders) => join(folders.config, 'profiles.json');

async function readProfiles(folders: Folders): Promise<Profiles> {
  const text = await readIfExists(profilesFile(folders));
  if (text === undefined) return new Map();
  const parsed = profilesSchema.safeParse(parseJson(text));
  if (!parsed.success) {
    throw new CallkeyError(
      'usage',
      `Couldn't read ${profilesFile(folders)}: it isn't a valid profile file. Fix it, or delete it and run callkey key set to store your keys again.`,
    );
  }
  return new Map(Object.entries(parsed.data));
}

/** Advice for when a key can't be stored. */
export const storageAdvice =
  'Or set CALLKEY_SERVER and either CALLKEY_API_KEY or CALLKEY_API_KEY_FILE, so that nothing needs to be stored.';

function writeProfiles(folders: Folders, profiles: Profiles): Promise<void> {
  return writeDurably(profilesFile(folders), `${JSON.stringify(Object.fromEntries(profiles), undefined, 2)}\n`, storageAdvice);
}

/** @throws CallkeyError `usage` if the key would be sent unencrypted or the text isn't a valid address */
export function checkedServer(text: string): string {
  const read = readServerAddress(text);
  if (!read.ok) throw new CallkeyError('usage', read.problem);
  return read.address;
}
