import { constants } from 'node:fs';
import { lstat, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findKeyValues, hasMistypedKey } from '#contract/key-value.ts';
import { shellWord } from '#contract/text/shell.ts';
import { CallkeyError, errorCode, usageError } from '../client/errors.ts';
import { writeDurably } from '../state/durable-file.ts';
import type { Environment, Folders } from '../state/folders.ts';
import { shellCommand } from '../terminal/help.ts';
import { type KeyLocation, type Profile, requireServer, type Settings, storageAdvice } from './settings.ts';

/** A key, and where it is, in words that follow "is". @property variable the environment variable that it comes from, if any */
type FoundKey = { keyValue: string; where: string; variable?: string };

/** Reads the key from the environment, or else from the profile. @throws CallkeyError */
export async function readKey(settings: Settings, environment: Environment, folders: Folders): Promise<FoundKey> {
  const environmentKey = await readEnvironmentKey(environment);
  if (environmentKey) return environmentKey;
  const { profileName, profile } = settings;
  if (!profile) {
    throw usageError(
      `No key is stored for the profile ${profileName}. Run ${keySetCommand(profileName, requireServer(settings))} to store one, or set CALLKEY_API_KEY or CALLKEY_API_KEY_FILE.`,
    );
  }
  refuseOtherServer(settings, profile);
  const { keyValue, where } = await readStoredKey(profile, profileName, folders);
  if (keyValue === undefined) {
    throw usageError(
      `The key for the profile ${profileName} is no longer in ${where}. Run ${keySetCommand(profileName)} to store it again.`,
    );
  }
  return { keyValue: checkedKey(keyValue, `The text in ${where}`), where: `in ${where}` };
}

/** Reads the key from CALLKEY_API_KEY, or from the file in CALLKEY_API_KEY_FILE, as containers receive secrets. @throws CallkeyError */
export async function readEnvironmentKey(environment: Environment): Promise<FoundKey | undefined> {
  const { CALLKEY_API_KEY: value, CALLKEY_API_KEY_FILE: path } = environment;
  const overrides = ', which overrides any stored key';
  if (value && path) throw usageError('CALLKEY_API_KEY and CALLKEY_API_KEY_FILE are both set. Unset one of them.');
  if (value)
    return { keyValue: checkedKey(value, 'CALLKEY_API_KEY'), where: `in CALLKEY_API_KEY${overrides}`, variable: 'CALLKEY_API_KEY' };
  if (!path) return undefined;
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    const reason = errorCode(error) ?? String(error);
    throw usageError(`Couldn't read ${path}, the file in CALLKEY_API_KEY_FILE (${reason}). Check its name and permissions.`);
  });
  const where = `in the file ${path} (CALLKEY_API_KEY_FILE)${overrides}`;
  return { keyValue: checkedKey(text, `The text in ${path}`), where, variable: 'CALLKEY_API_KEY_FILE' };
}

/** Reads a profile's key. Also returns where it is, or where it should be. */
export async function readStoredKey({ server, key }: Profile, profileName: string, folders: Folders) {
  const store = await openKeyStore(key, profileName, server, folders);
  return { keyValue: await store.read(), where: store.where };
}

/** @throws CallkeyError `usage` if the key was stored for a server other than the one that the command uses */
export function refuseOtherServer(settings: Settings, profile: Profile): void {
  const server = requireServer(settings);
  if (new URL(profile.server).origin === new URL(server).origin) return;
  throw usageError(
    `The key for the profile ${settings.profileName} was stored for ${profile.server}, so it isn't sent to ${server}. ` +
      `Store a key for that server with ${keySetCommand('NAME', server)}, or set CALLKEY_API_KEY.`,
    { code: 'other-server' },
  );
}

/** Returns the command that stores a key for a profile. */
export function keySetCommand(profileName: string, server?: string, ...options: '--insecure-storage'[]): string {
  return shellCommand({ profile: profileName === 'default' ? undefined : profileName, server }, 'key', 'set', ...options);
}

/** Returns the key in a text. Detects a mistyped one by its checksum, without asking a core. @throws CallkeyError without the text */
export function checkedKey(text: string, subject: string): string {
  const [keyValue, other] = findKeyValues(text);
  if (other !== undefined) throw usageError(`${subject} contains several API keys. Use only one.`);
  if (keyValue !== undefined) return keyValue;
  if (hasMistypedKey(text))
    throw usageError(`${subject} has at least one wrong character, because its checksum doesn't match. Copy the key again.`);
  throw usageError(
    `${subject} isn't an API key: a key is svc_sk_live_ followed by 49 letters and digits, which end in a checksum. Copy the whole key again.`,
  );
}

/**
 * Opens the place where a profile's key for one server is stored. The name contains the server's origin, so a key is never read for another
 * server, and a new server's key doesn't replace the old key until the profile names that server.
 *
 * @returns its `id` is unique on this machine, and `where` is for messages @throws CallkeyError if this machine can't use that place
 */
export async function openKeyStore(place: KeyLocation, profileName: string, server: string, folders: Folders) {
  const name = `${profileName}@${new URL(server).origin.replace('://', '.')}`;
  const setInFile = keySetCommand(profileName, server, '--insecure-storage');
  const store = place === 'file' ? openKeyFile(name, folders, setInFile) : await openKeychain(name, setInFile);
  return { id: `${place} ${name}`, ...store };
}

function openKeyFile(name: string, folders: Folders, setInFile: string) {
  if (process.platform === 'win32') {
    throw usageError("--insecure-storage isn't available on Windows. Remove it: Credential Manager stores the key.");
  }
  const path = join(folders.data, 'keys', name);
  const advice = `Delete it and run ${setInFile} to store the key again.`;
  return {
    where: `the file ${path}`,
    read: () => readPrivately(path, advice),
    async write(keyValue: string): Promise<void> {
      await refuseLink(path, advice);
      await writeDurably(path, `${keyValue}\n`, storageAdvice);
    },
    /** @returns false if no key was stored */
    async delete(): Promise<boolean> {
      const isThere = (await lstat(path).catch(() => undefined)) !== undefined;
      await rm(path, { force: true });
      return isThere;
    },
  };
}

/** Refuses a link: another user could create one here to choose where the key is written. */
async function refuseLink(path: string, advice: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats && !stats.isFile()) throw unsafeFileError(path, "it's a link or not a regular file", advice);
}

/** Reads a file if no one else can. Checks the open file instead of its path, so that no one can swap it between check and read. */
async function readPrivately(path: string, advice: string): Promise<string | undefined> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    // Without O_NONBLOCK, opening a pipe created here by another user would block forever.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (errorCode(error) === 'ELOOP') throw unsafeFileError(path, "it's a symbolic link", advice);
    throw new CallkeyError(
      'failed',
      `Couldn't read the key file ${path} (${errorCode(error)}). Check its permissions, or set CALLKEY_API_KEY.`,
      { cause: error },
    );
  }
  try {
    const { mode, uid, nlink } = await file.stat();
    if ((mode & constants.S_IFMT) !== constants.S_IFREG || nlink > 1)
      throw unsafeFileError(path, "it's a link or not a regular file", advice);
    if (uid !== process.getuid?.()) throw unsafeFileError(path, 'it belongs to another user', advice);
    if ((mode & 0o077) !== 0)
      throw unsafeFileError(
        path,
        'others can read or write it',
        `If someone may have done so, revoke the key. Otherwise, run chmod 600 ${shellWord(path)}`,
      );
    return (await file.readFile('utf8')).trim();
  } finally {
    await file.close();
  }
}

function unsafeFileError(path: string, reason: string, advice: string): CallkeyError {
  return new CallkeyError('failed', `Refused to use the key file ${path}: ${reason}. ${advice}`);
}

const keychainNames: Readonly<Record<string, string>> = { darwin: 'Keychain', win32: 'Credential Manager' };

/** Opens the entry with this name in the system's keychain. @throws CallkeyError if there's no keychain */
async function openKeychain(name: string, setInFile: string) {
  const keychain = keychainNames[process.platform] ?? 'Secret Service';
  const entry = await inKeychain(setInFile, async () => {
    const { AsyncEntry } = await import('@napi-rs/keyring');
    // By default, the library falls back to the kernel's keyring, which loses the key on restart and is invisible to other sessions (its
    // README, "Linux backend selection"). When pinned to the Secret Service, it throws instead.
    return new AsyncEntry('callkey', name, { linux: { store: 'secret-service' } });
  });
  return {
    where: `the system's keychain (${keychain})`,
    read: () => inKeychain(setInFile, async () => (await entry.getPassword()) ?? undefined),
    write: (keyValue: string) => inKeychain(setInFile, () => entry.setPassword(keyValue)),
    delete: () => inKeychain(setInFile, () => entry.deletePassword()),
  };
}

async function inKeychain<Result>(setInFile: string, use: () => Promise<Result>): Promise<Result> {
  try {
    return await use();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CallkeyError(
      'failed',
      `Couldn't use the system's keychain (${reason}). Unlock it${process.platform === 'linux' ? ', or start one that supports the Secret Service (GNOME Keyring, KWallet, KeePassXC)' : ''}; ` +
        `or set CALLKEY_API_KEY, as in CI; or run ${setInFile} to store the key in a file that only you can read.`,
      { cause: error },
    );
  }
}
