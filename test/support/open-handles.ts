import { readdirSync } from 'node:fs';
import { Socket } from 'node:net';

/** What keeps this process from ending: processes, servers and sockets, but for its own standard streams. Node documents only their types. */
export function openHandles(): unknown[] {
  const handles: unknown[] = Reflect.get(process, '_getActiveHandles').call(process);
  return handles.filter((handle) => !(handle instanceof Socket && Number(Reflect.get(handle, 'fd') ?? 3) < 3));
}

/** How many files, sockets and pipes this process has open. */
export function openFiles(): number {
  return readdirSync('/dev/fd').length;
}
