import { renameSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';

/**
 * Writes a file under a temporary name, and renames it once it's complete and on disk. Until then, an older file stays as it is.
 *
 * @param write resolves with false to keep the older file
 */
export async function replaceFile(path: string, write: (file: FileHandle) => Promise<boolean>, mode = 0o666): Promise<void> {
  const partPath = `${path}.part`;
  try {
    const file = await open(partPath, 'w', mode);
    const isComplete = await syncAfter(file, write).finally(() => file.close());
    await (isComplete ? rename(partPath, path) : rm(partPath));
  } catch (error) {
    await rm(partPath, { force: true }).catch(() => undefined);
    throw error;
  }
}

async function syncAfter(file: FileHandle, write: (file: FileHandle) => Promise<boolean>): Promise<boolean> {
  const isComplete = await write(file);
  if (isComplete) await file.sync();
  return isComplete;
}

/** Renames a file that can't be read, because the next write would replace it. @returns its new name */
export function setAside(path: string): string {
  const newPath = `${path}.unreadable-${Date.now()}`;
  renameSync(path, newPath);
  return newPath;
}
