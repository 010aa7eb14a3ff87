import { statfsSync } from 'node:fs';

/** Returns a folder in memory if it has this many bytes of free space (containers often have 64 MB), because databases wait for a disk at each commit. */
export function memoryFolder(bytes: number): string | undefined {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > bytes ? '/dev/shm' : undefined;
  } catch {
    return undefined;
  }
}
