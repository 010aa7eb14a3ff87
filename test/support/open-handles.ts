import { readdirSync } from 'node:fs';
import { Socket } from 'node:net';

/**
 * Returns the handles that keep this process running: processes, servers and sockets, except its own standard streams. Node.js documents
 * only their types.
 */
export function openHandles(): unknown[] {
  const handles: unknown[] = Reflect.get(process, '_getActiveHandles').call(process);
  return handles.filter((handle) => !(handle instanceof Socket && Number(Reflect.get(handle, 'fd') ?? 3) < 3));
}

/** Returns the number of files, sockets and pipes that this process has open. */
export function openFiles(): number {
  return readdirSync('/dev/fd').length;
}
