import { constants } from 'node:fs';
import { lstat, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isKeyValue } from '#contract/key-value.ts';
import { CallkeyError, errorCode } from '../client/errors.ts';
import { type KeyLocation, type Profile, requireServer, type Settings, storageAdvice } from '../settings.ts';
import { writeDurably } from '../state/durable-file.ts';
import type { Environment, Folders } from '../state/xdg.ts';
import { shellCommand, shellWord } from '../terminal/shell-command.ts';
import { openKeychain } from './keychain.ts';

/** Stores the key of one profile, in the keychain or in a file. */
type KeyStore = {
  /** Unique among all places on a machine. */
  readonly id: string;
  /** The location, for messages to the user. */
  readonly where: string;
  read(): Promise<string | undefined>;
  write(keyValue: string): Promise<void>;
  /** @returns false if no key was stored */
  delete(): Promise<boolean>;
};

/**
 * Opens the place where a profile's key for one server is stored. The name contains the server's origin, so that no key is ever read for
 * another one, and a new key doesn't replace the old one before the profile names the new server.
 *
 * @param server null for a key from version 0.1, which didn't store the origin
 * @throws CallkeyError if this machine can't use that place
 */
export async function openKeyStore(place: KeyLocation, profileName: string, server: string | null, folders: Folders): Promise<KeyStore> {
  const name = server === null ? profileName : `${profileName}@${new URL(server).origin.replace('://', '.')}`;
  return { id: `${place} ${name}`, ...(place === 'file' ? openKeyFile(name, folders) : await openKeychain(name)) };
}

/** Opens every place where a profile's key may be: the current one, and the one from version 0.1. */
export function openKeyStores({ server, key }: Profile, profileName: string, folders: Folders): Promise<KeyStore[]> {
  return Promise.all([...new Set([server, null])].map((of) => openKeyStore(key, profileName, of, folders)));
}

function openKeyFile(name: string, folders: Folders): Omit<KeyStore, 'id'> {
  if (process.platform === 'win32') {
    throw new CallkeyError('usage', "--insecure-storage isn't available on Windows. Remove it: Credential Manager stores the key.");
  }
  const path = join(folders.data, 'keys', name);
  return {
    where: `the file ${path}`,
    read: () => readPrivately(path),
    async write(keyValue) {
      await refuseLink(path);
      await writeDurably(path, `${keyValue}\n`, storageAdvice);
    },
    async delete() {
      const isThere = (await lstat(path).catch(() => undefined)) !== undefined;
      await rm(path, { force: true });
      return isThere;
    },
  };
}

/** Refuses a link, which another user could create here to choose where the key is written. */
async function refuseLink(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats && !stats.isFile()) throw unsafeFileError(path, 'it is a link or not a regular file');
}

/** Reads a file if no one else can. Checks the open file instead of its path, so that no one can swap it between check and read. */
async function readPrivately(path: string): Promise<string | undefined> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    // Without O_NONBLOCK, opening a pipe created here by another user would block forever.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (errorCode(error) === 'ELOOP') throw unsafeFileError(path, 'it is a link');
    throw new CallkeyError(
      'failed',
      `Couldn't read the key file ${path} (${errorCode(error)}). Check its permissions, or set CALLKEY_API_KEY.`,
      { cause: error },
    );
  }
  try {
    const { mode, uid, nlink } = await file.stat();
    if ((mode & constants.S_IFMT) !== constants.S_IFREG || nlink > 1) throw unsafeFileError(path, 'it is a link or not a regular file');
    if (uid !== process.getuid?.()) throw unsafeFileError(path, 'it belongs to another user');
    if ((mode & 0o077) !== 0)
      throw unsafeFileError(
        path,
        'others can read or write it',
        `If they may have, revoke the key. Otherwise, run chmod 600 ${shellWord(path)}`,
      );
    return (await file.readFile('utf8')).trim();
  } finally {
    await file.close();
  }
}

function unsafeFileError(
  path: string,
  reason: string,
  advice = 'Delete it and run callkey key set --insecure-storage to store the key again.',
): CallkeyError {
  return new CallkeyError('failed', `Refused to use the key file ${path}: ${reason}. ${advice}`);
}

/**
 * Reads the key from CALLKEY_API_KEY, or from the file named by CALLKEY_API_KEY_FILE, as containers receive secrets.
 *
 * @throws CallkeyError
 */
export async function readEnvironmentKey(environment: Environment): Promise<{ keyValue: string; where: string } | undefined> {
  const { CALLKEY_API_KEY: value, CALLKEY_API_KEY_FILE: path } = environment;
  if (value && path) throw new CallkeyError('usage', 'CALLKEY_API_KEY and CALLKEY_API_KEY_FILE are both set. Unset one of them.');
  if (value) return { keyValue: checkedKey(value.trim(), 'CALLKEY_API_KEY'), where: 'in CALLKEY_API_KEY' };
  if (!path) return undefined;
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    const reason = errorCode(error) ?? String(error);
    throw new CallkeyError('usage', `Couldn't read ${path}, the file in CALLKEY_API_KEY_FILE (${reason}). Check its name and permissions.`);
  });
  return { keyValue: checkedKey(text.trim(), `The text in ${path}`), where: `in the file ${path} (CALLKEY_API_KEY_FILE)` };
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

/** Reads a profile's key, and says where it is, or where it should be. */
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

/** @throws CallkeyError `usage` if the stored key is for another server than the one that the command uses */
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

/** Detects a mistyped key by its checksum, without asking a core. @throws CallkeyError without repeating the text */
export function checkedKey(text: string, subject: string): string {
  if (isKeyValue(text)) return text;
  throw new CallkeyError(
    'usage',
    `${subject} isn't an API key: a key is svc_sk_live_ followed by 49 letters and digits, which end in a checksum. Copy the whole key again.`,
  );
}
