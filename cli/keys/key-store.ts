import { constants } from 'node:fs';
import { lstat, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AsyncEntry } from '@napi-rs/keyring';
import { isKeyValue } from '#contract/key-value.ts';
import { CallkeyError, errorCode } from '../client/errors.ts';
import { writeDurably } from '../durable-file.ts';
import type { KeyPlace, Settings } from '../settings.ts';
import type { Environment, Folders } from '../xdg.ts';

/** One profile's key, in one place. */
export type KeyStore = {
  /** For people: where it is. */
  readonly where: string;
  read(): Promise<string | undefined>;
  write(keyValue: string): Promise<void>;
  /** @returns whether there was one */
  remove(): Promise<boolean>;
};

/** @throws Failure where the place cannot be used on this machine */
export async function openKeyStore(place: KeyPlace, profileName: string, folders: Folders): Promise<KeyStore> {
  return place === 'file' ? openKeyFile(profileName, folders) : openKeychain(profileName);
}

const keychainNames: Readonly<Record<string, string>> = { darwin: 'Keychain', win32: 'Credential Manager' };

async function openKeychain(profileName: string): Promise<KeyStore> {
  const name = keychainNames[process.platform] ?? 'Secret Service';
  const entry = await inKeychain(async () => openEntry(await import('@napi-rs/keyring'), profileName));
  return {
    where: `the system's keychain (${name})`,
    read: () => inKeychain(async () => (await entry.getPassword()) ?? undefined),
    write: (keyValue) => inKeychain(() => entry.setPassword(keyValue)),
    remove: () => inKeychain(() => entry.deletePassword()),
  };
}

/**
 * Pinned to the Secret Service: left alone, the library falls back to the kernel's keyring, which forgets at the next restart and
 * which other sessions cannot read (its README, "Linux backend selection"). Pinned, it throws instead.
 */
function openEntry(keyring: typeof import('@napi-rs/keyring'), profileName: string): AsyncEntry {
  return new keyring.AsyncEntry('callkey', profileName, { linux: { store: 'secret-service' } });
}

async function inKeychain<Result>(use: () => Promise<Result>): Promise<Result> {
  try {
    return await use();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CallkeyError(
      'failed',
      `The system's keychain cannot be used (${reason}). Unlock it${process.platform === 'linux' ? ', or start one that speaks the Secret Service (GNOME Keyring, KWallet, KeePassXC)' : ''}; ` +
        'or set CALLKEY_API_KEY, as in CI; or keep the key in a file that only you can read: callkey key set --insecure-storage',
      { cause: error },
    );
  }
}

function openKeyFile(profileName: string, folders: Folders): KeyStore {
  if (process.platform === 'win32') {
    throw new CallkeyError('usage', 'There is no --insecure-storage on Windows: Credential Manager is always there.');
  }
  const path = join(folders.data, 'keys', profileName);
  return {
    where: `the file ${path}`,
    read: () => readPrivately(path),
    async write(keyValue) {
      await refuseLink(path);
      await writeDurably(path, `${keyValue}\n`);
    },
    async remove() {
      const isThere = (await lstat(path).catch(() => undefined)) !== undefined;
      await rm(path, { force: true });
      return isThere;
    },
  };
}

/** A link here would have the key written, or another file read, where somebody else chose. */
async function refuseLink(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found && !found.isFile()) throw unsafe(path, 'it is a link or no regular file');
}

/** The checks are made on what has been opened, so that nobody can swap the file in between. */
async function readPrivately(path: string): Promise<string | undefined> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    // Without O_NONBLOCK, opening a pipe that somebody put there would wait for ever.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (errorCode(error) === 'ELOOP') throw unsafe(path, 'it is a link');
    throw new CallkeyError('failed', `${path} cannot be read (${errorCode(error)}).`, { cause: error });
  }
  try {
    const { mode, uid, nlink } = await file.stat({ bigint: false });
    if ((mode & constants.S_IFMT) !== constants.S_IFREG || nlink > 1) throw unsafe(path, 'it is a link or no regular file');
    if (uid !== process.getuid?.()) throw unsafe(path, 'it belongs to somebody else');
    if ((mode & 0o077) !== 0) throw unsafe(path, 'others can read or write it', `Revoke the key if they may have; or: chmod 600 ${path}`);
    return (await file.readFile('utf8')).trim();
  } finally {
    await file.close();
  }
}

function unsafe(
  path: string,
  reason: string,
  advice = 'Remove it and store the key again: callkey key set --insecure-storage',
): CallkeyError {
  return new CallkeyError('failed', `The key file ${path} is not used: ${reason}. ${advice}`);
}

/** The key to call with: the environment's, or else the profile's. @throws Failure */
export async function readKey(settings: Settings, environment: Environment, folders: Folders): Promise<string> {
  const given = environment['CALLKEY_API_KEY'];
  if (given) return checkedKey(given.trim(), 'CALLKEY_API_KEY');
  const { profileName, profile } = settings;
  if (!profile) {
    throw new CallkeyError(
      'usage',
      `No key is stored for the profile ${profileName}. Store one with: callkey key set; or set CALLKEY_API_KEY.`,
    );
  }
  const store = await openKeyStore(profile.key, profileName, folders);
  const keyValue = await store.read();
  if (keyValue === undefined) {
    throw new CallkeyError('usage', `The key of the profile ${profileName} is gone from ${store.where}. Store it again: callkey key set`);
  }
  return checkedKey(keyValue, `What is stored in ${store.where}`);
}

/** Tells a mistyped key at once, without asking a core. @throws Failure that does not repeat it */
export function checkedKey(text: string, what: string): string {
  if (isKeyValue(text)) return text;
  throw new CallkeyError(
    'usage',
    `${what} is no API key: a key is svc_sk_live_ and 49 letters and digits, the last of which check the others. Copy it once more, whole.`,
  );
}
