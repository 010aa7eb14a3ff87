import { join } from 'node:path';
import { z } from 'zod';
import { readServerAddress } from '#contract/server-address.ts';
import { CallkeyError } from './client/errors.ts';
import { parseJson, readIfExists, writeDurably } from './durable-file.ts';
import type { Environment, Folders } from './xdg.ts';

/** The options that every command takes. */
export type GlobalOptions = { profile?: string; server?: string; json?: true; verbose?: true };

export const keyPlaces = ['keychain', 'file'] as const;
/** Where a profile's key is kept. */
export type KeyPlace = (typeof keyPlaces)[number];

const profileSchema = z.object({ server: z.string().nullable(), key: z.enum(keyPlaces) });
const profilesSchema = z.record(z.string(), profileSchema);
export type Profile = z.infer<typeof profileSchema>;
type Profiles = Map<string, Profile>;

/** What the options, the environment and the stored profile come to. */
export type Settings = {
  profileName: string;
  profile: Profile | undefined;
  /** Without a trailing slash; null where none is given anywhere. */
  server: string | null;
};

/** @throws Failure `usage` */
export async function readSettings(options: GlobalOptions, environment: Environment, folders: Folders): Promise<Settings> {
  const profileName = options.profile ?? (environment['CALLKEY_PROFILE'] || 'default');
  if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/.test(profileName)) {
    throw new CallkeyError('usage', `"${profileName}" cannot name a profile: give up to 64 letters, digits, dots, dashes and underscores.`);
  }
  const profile = (await readProfiles(folders)).get(profileName);
  const server = options.server ?? (environment['CALLKEY_SERVER'] || (profile?.server ?? null));
  return { profileName, profile, server: server === null ? null : checkedServer(server) };
}

/** @throws Failure `usage` */
export function serverOf({ server }: Settings): string {
  if (server !== null) return server;
  throw new CallkeyError(
    'usage',
    'No server is given. Add --server https://…, set CALLKEY_SERVER, or store one with the key: callkey key set --server https://…',
  );
}

export async function storeProfile(folders: Folders, name: string, profile: Profile): Promise<void> {
  await writeProfiles(folders, (await readProfiles(folders)).set(name, profile));
}

export async function deleteProfile(folders: Folders, name: string): Promise<void> {
  const profiles = await readProfiles(folders);
  if (profiles.delete(name)) await writeProfiles(folders, profiles);
}

const fileOf = (folders: Folders) => join(folders.config, 'profiles.json');

async function readProfiles(folders: Folders): Promise<Profiles> {
  const text = await readIfExists(fileOf(folders));
  if (text === undefined) return new Map();
  const parsed = profilesSchema.safeParse(parseJson(text));
  if (!parsed.success) {
    throw new CallkeyError(
      'usage',
      `${fileOf(folders)} cannot be understood. Mend it, or remove it and store your keys again: callkey key set`,
    );
  }
  return new Map(Object.entries(parsed.data));
}

function writeProfiles(folders: Folders, profiles: Profiles): Promise<void> {
  return writeDurably(fileOf(folders), `${JSON.stringify(Object.fromEntries(profiles), undefined, 2)}\n`);
}

/** @throws Failure `usage` where a key must not be sent */
export function checkedServer(text: string): string {
  const read = readServerAddress(text);
  if (!read.ok) throw new CallkeyError('usage', read.problem);
  return read.address;
}
