// By hand: write-file-atomic does not sync the folder, so that a power cut could undo its rename.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CallkeyError, errorCode } from './client/errors.ts';

/** Only the owner can read these files and folders. */
export const privateFile = 0o600;
export const privateFolder = 0o700;

/** What to do where a command cannot keep what it has to remember. */
export const stateAdvice = 'Name a folder that this user can write to: --state DIR.';

const diskReasons: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: "the user's share of the disk is used up",
  EROFS: 'the file system is read-only',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  ENOTDIR: 'a part of the path is no folder',
  // mkdir says so of a file where a folder has to be.
  EEXIST: 'a part of the path is no folder',
};

/** Why the system could not write, in words. */
export function diskReason(error: unknown): string {
  const code = errorCode(error);
  return (code && diskReasons[code]) ?? (error instanceof Error ? error.message : String(error));
}

export function diskError(error: unknown, what: string, advice = ''): CallkeyError {
  if (error instanceof CallkeyError) return error;
  const code = /^(ENOSPC|EDQUOT)$/.test(errorCode(error) ?? '') ? 'disk-full' : 'not-writable';
  return new CallkeyError('failed', `${what}: ${diskReason(error)}. ${advice}`.trim(), { code, cause: error });
}

/**
 * Replaces a whole file: after a crash or a power cut, the file has the old text or the new one, never half of either.
 *
 * @throws CallkeyError `failed`
 */
export async function writeDurably(path: string, text: string, advice?: string): Promise<void> {
  try {
    await replace(path, text);
  } catch (error) {
    throw diskError(error, `Could not write ${path}`, advice);
  }
}

async function replace(path: string, text: string): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: privateFolder });
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, 'wx', privateFile);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/** A power cut may undo a rename until its folder is synced (fsync(2)). Windows has no such call. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** @returns undefined where there is no such file */
export function readIfExists(path: string): Promise<string | undefined> {
  return unlessMissing(readFile(path, 'utf8'), undefined);
}

/** @returns the names in a folder; none where there is no such folder */
export function listIfExists(folder: string): Promise<string[]> {
  return unlessMissing(readdir(folder), []);
}

async function unlessMissing<Found, Missing>(reading: Promise<Found>, missing: Missing): Promise<Found | Missing> {
  try {
    return await reading;
  } catch (error) {
    // ENOTDIR: service users often have /dev/null for a home.
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return missing;
    throw error;
  }
}
