import { hash, randomUUID } from 'node:crypto';
import { type FileHandle, open, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type ByteSource, UnreadableFile } from './text-file.ts';

/** @property path null if it can't be opened again later */
export type OpenFile = ByteSource & { path: string | null; close(): Promise<void> };

class ChangedFile extends UnreadableFile {}

const chunkBytes = 64 * 1024;

/**
 * Opens a file that's read several times, and is never in memory as a whole. Each chunk is overwritten by the next.
 *
 * @param spool copies a pipe, which can be read only once, to a file
 * @throws UnreadableFile
 */
export async function openFile(from: string, spool: (pipe: AsyncIterable<Uint8Array>) => Promise<FileHandle>): Promise<OpenFile> {
  const file = await open(from).catch((error: unknown) => {
    throw unreadable(from, error);
  });
  try {
    const stats = await file.stat();
    if (stats.isDirectory()) throw unreadable(from, 'it is a folder');
    if (stats.isFile()) return toOpenFile(file, from, await realpath(from));
    const copy = await spool(file.createReadStream({ autoClose: false }));
    await file.close();
    return toOpenFile(copy, from, null);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Copies to an unnamed file, which only its owner can read. It disappears when the command ends, even if it's killed. */
export async function copyToUnnamedFile(source: AsyncIterable<Uint8Array>, folder: string): Promise<FileHandle> {
  const path = join(folder, `callkey-${randomUUID()}.tmp`);
  const file = await open(path, 'wx+', 0o600);
  await rm(path);
  for await (const chunk of source) await file.writeFile(chunk);
  return file;
}

export function toOpenFile(file: FileHandle, name: string, path: string | null): OpenFile {
  /** Of each chunk, at the first read: a line that changed after its check would be used unchecked, and size and times may be the same. */
  const digests: string[] = [];
  let isKnownWhole = false;
  const assertUnchanged = (n: number, digest: string | undefined) => {
    if (!isKnownWhole && digests[n] === undefined && digest !== undefined) digests.push(digest);
    if (digests[n] !== digest) throw new ChangedFile(`${name} changed while it was being read.`);
  };
  return {
    name,
    path,
    async *chunks() {
      const buffer = Buffer.allocUnsafe(chunkBytes);
      for (let n = 0; ; n++) {
        const chunk = buffer.subarray(0, await fill(buffer, file, n * chunkBytes, name));
        assertUnchanged(n, chunk.length === 0 ? undefined : hash('sha256', chunk).slice(0, 32));
        if (chunk.length === 0) break;
        yield chunk;
      }
      isKnownWhole = true;
    },
    close: () => file.close(),
  };
}

/** @returns the number of bytes read; fewer than the buffer's size only at the end of the file */
async function fill(buffer: Buffer, file: FileHandle, position: number, name: string): Promise<number> {
  for (let filled = 0; ; ) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, position + filled).catch((error: unknown) => {
      throw unreadable(name, error);
    });
    filled += bytesRead;
    if (bytesRead === 0 || filled === buffer.length) return filled;
  }
}

function unreadable(name: string, error: unknown): UnreadableFile {
  const code = error instanceof Error && 'code' in error ? error.code : error;
  return new UnreadableFile(`Couldn't read ${name} (${String(code)}). Check its name and permissions.`, { cause: error });
}
