import { readFile } from 'node:fs/promises';
import { findKeyValues } from '#contract/key-value.ts';
import { CallkeyError, errorCode } from '../client/errors.ts';
import { type Profile, requireServer, type Settings } from '../settings.ts';
import type { Environment, Folders } from '../state/xdg.ts';
import { shellCommand } from '../terminal/shell-command.ts';
import { openKeyStores } from './key-store.ts';

/**
 * Reads the key from CALLKEY_API_KEY, or from the file named by CALLKEY_API_KEY_FILE, which is how containers receive secrets.
 *
 * @throws CallkeyError
 */
export async function readEnvironmentKey(environment: Environment): Promise<{ keyValue: string; where: string } | undefined> {
  const { CALLKEY_API_KEY: value, CALLKEY_API_KEY_FILE: path } = environment;
  if (value && path) throw new CallkeyError('usage', 'CALLKEY_API_KEY and CALLKEY_API_KEY_FILE are both set. Unset one of them.');
  if (value) return { keyValue: checkedKey(value, 'CALLKEY_API_KEY'), where: 'in CALLKEY_API_KEY' };
  if (!path) return undefined;
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    const reason = errorCode(error) ?? String(error);
    throw new CallkeyError('usage', `Couldn't read ${path}, the file in CALLKEY_API_KEY_FILE (${reason}). Check its name and permissions.`);
  });
  return { keyValue: checkedKey(text, `The text in ${path}`), where: `in the file ${path} (CALLKEY_API_KEY_FILE)` };
}

/** Reads the key from the environment, or else from the profile. @throws CallkeyError */
export async function readKey(settings: Settings, environment: Environment, folders: Folders): Promise<string> {
  const environmentKey = await readEnvironmentKey(environment);
  if (environmentKey) return environmentKey.keyValue;
  const { profileName, profile } = settings;
  if (!profile) {
    throw new CallkeyError(
      'usage',
      `No key is stored for the profile ${profileName}. Run ${keySetCommand(profileName)} to store one, or set CALLKEY_API_KEY or CALLKEY_API_KEY_FILE.`,
    );
  }
  refuseOtherServer(settings, profile);
  const stored = await readStoredKey(profile, profileName, folders);
  if (stored.keyValue === undefined) {
    throw new CallkeyError(
      'usage',
      `The key for the profile ${profileName} is no longer in ${stored.where}. Run ${keySetCommand(profileName)} to store it again.`,
    );
  }
  return checkedKey(stored.keyValue, `The text in ${stored.where}`);
}

/** Reads a profile's key. Also returns where it is, or where it should be. */
export async function readStoredKey(
  profile: Profile,
  profileName: string,
  folders: Folders,
): Promise<{ keyValue: string | undefined; where: string }> {
  const stores = await openKeyStores(profile, profileName, folders);
  for (const store of stores) {
    const keyValue = await store.read();
    if (keyValue !== undefined) return { keyValue, where: store.where };
  }
  return { keyValue: undefined, where: stores[0]?.where ?? '' };
}

/** @throws CallkeyError `usage` if the key was stored for a server other than the one that the command uses */
export function refuseOtherServer(settings: Settings, profile: Profile): void {
  const server = requireServer(settings);
  if (profile.server !== null && new URL(profile.server).origin === new URL(server).origin) return;
  const [origin, setKey] =
    profile.server === null
      ? ['without a server', keySetCommand(settings.profileName, server)]
      : [`for ${profile.server}`, keySetCommand('NAME', server)];
  const advice = `Store a key for that server with ${setKey}, or set CALLKEY_API_KEY.`;
  throw new CallkeyError(
    'usage',
    `The key for the profile ${settings.profileName} was stored ${origin}, so it isn't sent to ${server}. ${advice}`,
    {
      code: 'other-server',
    },
  );
}

/** Returns the command that stores a key for a profile. */
export function keySetCommand(profileName: string, server?: string): string {
  return shellCommand({ profile: profileName === 'default' ? undefined : profileName, server }, 'key', 'set');
}

/**
 * Returns the key in a text that was entered or read, and detects a mistyped one by its checksum, without asking a core.
 *
 * @throws CallkeyError without repeating the text
 */
export function checkedKey(text: string, subject: string): string {
  const [keyValue, other] = findKeyValues(text);
  if (other !== undefined) throw new CallkeyError('usage', `${subject} contains several API keys. Use only one.`);
  if (keyValue !== undefined) return keyValue;
  throw new CallkeyError(
    'usage',
    `${subject} isn't an API key: a key is svc_sk_live_ followed by 49 letters and digits, which end in a checksum. Copy the whole key again.`,
  );
}
