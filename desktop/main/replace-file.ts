import { renameSync } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { failed } from '../core-requests.ts';
import { type Result, refusal } from '../ipc.ts';

/**
 * Writes a file under a temporary name, and renames it once it's complete and on disk. Until then, an older file stays as it is.
 *
 * @param write resolves with null to keep the older file
 * @param mode by default, the older file's, because it may be private
 */
export async function replaceFile<Value>(
  path: string,
  write: (file: FileHandle) => Promise<Value | null>,
  mode?: number,
): Promise<Value | null> {
  const olderMode = mode === undefined ? (await stat(path).catch(() => null))?.mode : undefined;
  const { file, partPath } = await createPart(path, mode ?? olderMode);
  try {
    const value = await syncAfter(file, async () => {
      if (olderMode !== undefined) await file.chmod(olderMode & 0o777);
      return write(file);
    }).finally(() => file.close());
    await (value === null ? rm(partPath) : rename(partPath, path));
    return value;
  } catch (error) {
    await rm(partPath, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Creates a file under a name that doesn't exist yet, because the user may have a file named `NAME.part`. */
async function createPart(path: string, mode?: number): Promise<{ file: FileHandle; partPath: string }> {
  for (let number = 1; ; number += 1) {
    const partPath = number === 1 ? `${path}.part` : `${path}.${number}.part`;
    const file = await open(partPath, 'wx', mode).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return null;
      throw error;
    });
    if (file) return { file, partPath };
  }
}

async function syncAfter<Value>(file: FileHandle, write: (file: FileHandle) => Promise<Value | null>): Promise<Value | null> {
  const value = await write(file);
  if (value !== null) await file.sync();
  return value;
}

/** Renames a file that can't be read, because the next write would replace it. @returns its new name */
export function setAside(path: string): string {
  const newPath = `${path}.unreadable-${Date.now()}`;
  renameSync(path, newPath);
  return newPath;
}

/** Saves a file that the user has chosen. @param write resolves with null to save nothing */
export async function saveChosen<Value>(
  path: string,
  write: (file: FileHandle) => Promise<Value | null>,
  mode?: number,
): Promise<Result<Value | null>> {
  try {
    return { ok: true, value: await replaceFile(path, write, mode) };
  } catch (error) {
    const isFull = error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
    const detail = isFull ? 'The disk is full. An older file with this name is unchanged.' : 'Choose another folder.';
    return failed(refusal('internal', detail));
  }
}
