// By hand: write-file-atomic does not sync the folder, so that a power cut could undo its rename.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CallkeyError, errorCode } from './client/errors.ts';

/** Only the owner can read these files and folders. */
export const privateFile = 0o600;
export const privateFolder = 0o700;

/** What to do where a command cannot keep what it has to remember. */
export const stateAdvice = 'Specify a folder that this user can read and write: --state DIR.';

const diskReasons: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is exceeded',
  EROFS: 'the file system is read-only',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a folder',
  ENOENT: "the folder can't be created",
  ENOTDIR: "part of the path isn't a folder",
  // mkdir says so of a file where a folder has to be.
  EEXIST: "part of the path isn't a folder",
};

/** Why the system could not write or read, in words. */
export function diskReason(error: unknown): string {
  const reason = error instanceof CallkeyError ? (error.cause ?? error) : error;
  const code = errorCode(reason);
  return (code && diskReasons[code]) ?? (reason instanceof Error ? reason.message : String(reason));
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
    throw diskError(error, `Couldn't write ${path}`, advice);
  }
}

async function replace(path: string, text: string): Promise<void> {
  const folder = dirname(path);
  await makeFolder(folder);
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

/**
 * Makes a folder and those above it, which only the owner can read. By hand: the recursive mkdir of Node.js calls a read-only disk a missing
 * folder, and never ends where the system has no folder to make, as in /proc.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdirUnlessThere(path);
  } catch (error) {
    const above = dirname(path);
    // A drive of Windows that is not there.
    if (above === path) throw error;
    await makeFolder(above);
    await mkdirUnlessThere(path);
  }
}

async function mkdirUnlessThere(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: privateFolder });
    await syncFolder(dirname(path));
  } catch (error) {
    // Systems differ in what they say of a folder that is there: a drive of Windows may not be made.
    const found = await stat(path).catch(() => undefined);
    if (!found?.isDirectory()) throw error;
  }
}

/** A power cut may undo what was made, renamed or deleted in a folder until that is synced (fsync(2)). Windows has no such call. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** @returns undefined where there is no such file @throws CallkeyError `failed` */
export function readIfExists(path: string, advice?: string): Promise<string | undefined> {
  return unlessMissing(readFile(path, 'utf8'), undefined, path, advice);
}

/** @returns the names in a folder; none where there is no such folder @throws CallkeyError `failed` */
export function listIfExists(folder: string, advice?: string): Promise<string[]> {
  return unlessMissing(readdir(folder), [], folder, advice);
}

async function unlessMissing<Found, Missing>(
  reading: Promise<Found>,
  missing: Missing,
  path: string,
  advice = 'Fix its permissions, or move it.',
): Promise<Found | Missing> {
  try {
    return await reading;
  } catch (error) {
    // ENOTDIR: service users often have /dev/null for a home.
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return missing;
    throw unreadable(path, error, advice);
  }
}

export function unreadable(path: string, error: unknown, advice: string): CallkeyError {
  return new CallkeyError('failed', `Couldn't read ${path}: ${diskReason(error)}. ${advice}`, { code: 'not-readable', cause: error });
}
