import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Writes a file's content, or a folder's entries, to the disk, so that it survives a power failure. */
export function flushToDisk(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
