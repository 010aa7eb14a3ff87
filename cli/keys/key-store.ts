import { constants } from 'node:fs';
import { lstat, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { shellWord } from '#contract/text/shell.ts';
import { CallkeyError, errorCode } from '../client/errors.ts';
import { type KeyLocation, type Profile, storageAdvice } from '../settings.ts';
import { writeDurably } from '../state/durable-file.ts';
import type { Folders } from '../state/xdg.ts';
import { openKeychain } from './keychain.ts';

/** Stores the key of one profile, in the keychain or in a file. */
type KeyStore = {
  /** Unique among all key stores on a machine. */
  readonly id: string;
  /** The location, for messages to the user. */
  readonly where: string;
  read(): Promise<string | undefined>;
  write(keyValue: string): Promise<void>;
  /** @returns false if no key was stored */
  delete(): Promise<boolean>;
};

/**
 * Opens the place where a profile's key for one server is stored. The name contains the server's origin, so a key is never read for another
 * server, and a new server's key doesn't replace the old key until the profile names that server.
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

/** Refuses a link: another user could create one here to choose where the key is written. */
async function refuseLink(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats && !stats.isFile()) throw unsafeFileError(path, "it's a link or not a regular file");
}

/** Reads a file if no one else can. Checks the open file instead of its path, so that no one can swap it between check and read. */
async function readPrivately(path: string): Promise<string | undefined> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    // Without O_NONBLOCK, opening a pipe created here by another user would block forever.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    if (errorCode(error) === 'ELOOP') throw unsafeFileError(path, "it's a symbolic link");
    throw new CallkeyError(
      'failed',
      `Couldn't read the key file ${path} (${errorCode(error)}). Check its permissions, or set CALLKEY_API_KEY.`,
      { cause: error },
    );
  }
  try {
    const { mode, uid, nlink } = await file.stat();
    if ((mode & constants.S_IFMT) !== constants.S_IFREG || nlink > 1) throw unsafeFileError(path, "it's a link or not a regular file");
    if (uid !== process.getuid?.()) throw unsafeFileError(path, 'it belongs to another user');
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

function unsafeFileError(
  path: string,
  reason: string,
  advice = 'Delete it and run callkey key set --insecure-storage to store the key again.',
): CallkeyError {
  return new CallkeyError('failed', `Refused to use the key file ${path}: ${reason}. ${advice}`);
}
