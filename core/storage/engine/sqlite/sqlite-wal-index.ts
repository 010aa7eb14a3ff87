import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/**
 * The progress of checkpoints, in frames of the WAL. `salt` changes each time the WAL starts again. While a checkpoint is running,
 * `attempted` is ahead of `done`.
 */
export type Checkpoints = { salt: number; done: number; attempted: number };

export type WalIndex = {
  /** Whether the file no longer has a name. This is faster than checking by name. */
  isDeleted(): boolean;
  checkpoints(): Checkpoints | undefined;
  close(): void;
};

/**
 * Open files by identity. Closing any descriptor of a file drops all of the process's locks on it, including SQLite's. So each file is
 * opened only once, and is closed when its last user has closed all connections.
 */
const opened = new Map<string, { descriptor: number; users: number }>();

/** The positions of fields, in bytes from the start of the index (see https://sqlite.org/walformat.html#walidxfmt). */
const at = { salt: 32, done: 96, attempted: 128, end: 132 } as const;

/**
 * Opens the `-shm` file, which SQLite maps into memory. This isn't possible on Windows, because SQLite's locks block other readers there.
 */
export function openWalIndex(path: string, identity: string): WalIndex {
  if (process.platform === 'win32') return { isDeleted: () => false, checkpoints: () => undefined, close: () => undefined };
  const index = opened.get(identity) ?? { descriptor: openSync(path, 'r'), users: 0 };
  opened.set(identity, index);
  index.users++;
  const bytes = Buffer.alloc(at.end);
  return {
    isDeleted: () => fstatSync(index.descriptor).nlink === 0,
    checkpoints() {
      if (readSync(index.descriptor, bytes, 0, at.end, 0) < at.end) return undefined;
      return { salt: bytes.readUInt32LE(at.salt), done: bytes.readUInt32LE(at.done), attempted: bytes.readUInt32LE(at.attempted) };
    },
    close() {
      if (--index.users > 0) return;
      opened.delete(identity);
      closeSync(index.descriptor);
    },
  };
}
