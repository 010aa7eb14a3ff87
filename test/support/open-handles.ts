import { readdirSync, readlinkSync } from 'node:fs';
import { Socket } from 'node:net';

/**
 * Returns the handles that keep this process running: processes, servers and sockets, except its own standard streams. Node.js documents
 * only their types.
 */
export function openHandles(): unknown[] {
  const handles: unknown[] = Reflect.get(process, '_getActiveHandles').call(process);
  return handles.filter((handle) => !(handle instanceof Socket && Number(Reflect.get(handle, 'fd') ?? 3) < 3));
}

/** Returns the files of a folder that this process has open, on Linux. */
export function openFilesIn(folder: string): string[] {
  return readdirSync('/dev/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/dev/fd/${fd}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      // The descriptor with which the folder was read is closed by now.
      return [];
    }
  });
}
