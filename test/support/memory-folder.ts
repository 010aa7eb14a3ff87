import { statfsSync } from 'node:fs';

/** Returns a folder in memory, where commits don't wait for a disk, if it has this many bytes free. Containers often have 64 MB. */
export function memoryFolder(bytes: number): string | undefined {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > bytes ? '/dev/shm' : undefined;
  } catch {
    return undefined;
  }
}
