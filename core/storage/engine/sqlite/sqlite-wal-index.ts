import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** How far checkpoints have come, in frames of the WAL, which begins again with another salt. The second number is ahead while one runs. */
export type Checkpoints = { salt: number; done: number; attempted: number };

export type WalIndex = {
  /** Whether the file has no name any more: cheaper to ask than by its name. */
  isDeleted(): boolean;
  checkpoints(): Checkpoints | undefined;
  close(): void;
};

/**
 * By identity. To close any descriptor of a file drops all locks that the process has on it, SQLite's too: so each file is opened once, and closed
 * when its last user has closed all connections.
 */
const opened = new Map<string, { descriptor: number; users: number }>();

/** In bytes from the start of the index: https://sqlite.org/walformat.html#walidxfmt */
const at = { salt: 32, done: 96, attempted: 128, end: 132 } as const;

/** Reads the file with the suffix `-shm` beside SQLite, which maps it into memory. Not on Windows, where SQLite's locks keep readers out. */
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
