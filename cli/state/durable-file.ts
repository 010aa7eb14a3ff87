// Hand-written because write-file-atomic doesn't sync the folder, so a power failure could undo its rename.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CallkeyError, errorCode } from '../client/errors.ts';
import type { Timing } from '../client/timing.ts';

/** Only the owner can read these files and folders. */
export const privateFile = 0o600;
const privateFolder = 0o700;

/** Advice for when a command can't store its state. */
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
  // mkdir reports this if there is a file where the folder should be.
  EEXIST: "part of the path isn't a folder",
};

/** Explains in plain words why the system couldn't read or write. */
export function diskReason(error: unknown): string {
  const reason = error instanceof CallkeyError ? (error.cause ?? error) : error;
  const code = errorCode(reason);
  return (code && diskReasons[code]) ?? (reason instanceof Error ? reason.message : String(reason));
}

export function diskError(error: unknown, failure: string, advice = ''): CallkeyError {
  if (error instanceof CallkeyError) return error;
  const code = /^(ENOSPC|EDQUOT)$/.test(errorCode(error) ?? '') ? 'disk-full' : 'not-writable';
  return new CallkeyError('failed', `${failure}: ${diskReason(error)}. ${advice}`.trim(), { code, cause: error });
}

/** Replaces a file. After a crash or power failure, it has the old text or the new one, never a mixture. @throws CallkeyError `failed` */
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
    await writeSynced(temporary, 'wx', text);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
}

/** In ms: how long a lock file stays before another command takes its place, because the command that made it must have been killed. */
const lockLife = 5_000;

/** Makes commands that change the same files take turns. @param path the lock is next to it @throws CallkeyError `failed` */
export async function inTurn<Result>(path: string, timing: Timing, change: () => Promise<Result>, advice?: string): Promise<Result> {
  const lock = `${path}.lock`;
  try {
    await makeFolder(dirname(path));
    for (let [seen, since] = ['', timing.elapsed()]; !(await isCreated(lock)); await timing.wait(10)) {
      const found = await identify(lock);
      if (seen !== found) [seen, since] = [found, timing.elapsed()];
      // Commands also take turns to delete it, or a slow one would delete the lock of the command that has replaced it.
      else if (timing.elapsed() - since > lockLife) {
        await inTurn(lock, timing, async () => {
          if ((await identify(lock)) === found) await rm(lock, { force: true });
        });
      }
    }
  } catch (error) {
    throw diskError(error, `Couldn't write ${path}`, advice);
  }
  try {
    return await change();
  } finally {
    await rm(lock, { force: true });
  }
}

async function identify(path: string): Promise<string> {
  const { ino = 0, mtimeMs = 0 } = (await stat(path).catch(() => undefined)) ?? {};
  return `${ino} ${mtimeMs}`;
}

/** Creates an empty file. @returns false if it already exists */
async function isCreated(path: string): Promise<boolean> {
  try {
    await (await open(path, 'wx', privateFile)).close();
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Appends to a file, or creates it. Keeps what another process has just written to it. @throws CallkeyError `failed` */
export async function appendDurably(path: string, text: string, advice?: string): Promise<void> {
  try {
    await makeFolder(dirname(path));
    await writeSynced(path, 'a', text);
    await syncFolder(dirname(path));
  } catch (error) {
    throw diskError(error, `Couldn't write ${path}`, advice);
  }
}

async function writeSynced(path: string, flag: 'wx' | 'a', text: string): Promise<void> {
  const file = await open(path, flag, privateFile);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Creates a folder and its parents, readable only by the owner. Hand-written because the recursive mkdir of Node.js reports a read-only
 * disk as a missing folder, and never returns if the system can't create folders there, as in /proc.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await ensureFolder(path);
  } catch (error) {
    const above = dirname(path);
    // The root has no parent to create. This happens if a Windows drive doesn't exist.
    if (above === path) throw error;
    await makeFolder(above);
    await ensureFolder(path);
  }
}

async function ensureFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: privateFolder });
    await syncFolder(dirname(path));
  } catch (error) {
    // Ignores any error if the folder exists, because its code depends on the system: for a Windows drive, it isn't EEXIST.
    const stats = await stat(path).catch(() => undefined);
    if (!stats?.isDirectory()) throw error;
  }
}

/** Syncs a folder (fsync(2)). Otherwise, a power failure can undo what was created, renamed or deleted in it. Windows can't do this. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Reads a file. @returns undefined if it doesn't exist @throws CallkeyError `failed` */
export function readIfExists(path: string, advice?: string): Promise<string | undefined> {
  return unlessMissing(readFile(path, 'utf8'), undefined, path, advice);
}

/** Returns the names in a folder, or none if it doesn't exist. @throws CallkeyError `failed` */
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
    // ENOTDIR: service users often have /dev/null as their home.
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return missing;
    throw unreadableError(path, error, advice);
  }
}

export function unreadableError(path: string, error: unknown, advice: string): CallkeyError {
  return new CallkeyError('failed', `Couldn't read ${path}: ${diskReason(error)}. ${advice}`, { code: 'not-readable', cause: error });
}
