import { renameSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';

/**
 * Writes a file under a temporary name, and renames it once it's complete and on disk. Until then, an older file stays as it is.
 *
 * @param write resolves with null to keep the older file
 */
export async function replaceFile<Value>(
  path: string,
  write: (file: FileHandle) => Promise<Value | null>,
  mode = 0o666,
): Promise<Value | null> {
  const partPath = `${path}.part`;
  try {
    const file = await open(partPath, 'w', mode);
    const value = await syncAfter(file, write).finally(() => file.close());
    await (value === null ? rm(partPath) : rename(partPath, path));
    return value;
  } catch (error) {
    await rm(partPath, { force: true }).catch(() => undefined);
    throw error;
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
