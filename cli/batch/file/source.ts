import { hash, randomUUID } from 'node:crypto';
import { type FileHandle, open, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CallkeyError, errorCode } from '../../client/errors.ts';
import { diskError, makeFolder, privateFile, stateAdvice } from '../../state/durable-file.ts';
import type { Folders } from '../../state/xdg.ts';

/** An open file of calls. It's read several times, and is never in memory as a whole. */
export type Source = {
  /** The name for messages. */
  name: string;
  /** Null if a later command can't read it again. */
  path: string | null;
  /**
   * Reads from the beginning. Each chunk is overwritten by the next. @throws CallkeyError `conflict` if the file has changed since the
   * first read
   */
  chunks(): AsyncGenerator<Buffer>;
  close(): Promise<void>;
};

const chunkBytes = 64 * 1024;

/** @param from a path, or `-` for standard input @throws CallkeyError `usage` */
export async function openSource(from: string, stdin: AsyncIterable<Uint8Array>, folders: Folders): Promise<Source> {
  if (from === '') throw new CallkeyError('usage', '--from: specify a file, or - for standard input.');
  if (from === '-') return toSource(await spool(stdin, folders), 'Standard input', null);
  const file = await open(from).catch((error: unknown) => {
    throw unreadableError(from, error);
  });
  try {
    const stats = await file.stat();
    if (stats.isDirectory()) throw unreadableError(from, 'it is a folder');
    if (stats.isFile()) return toSource(file, from, await realpath(from));
    const copy = await spool(file.createReadStream({ autoClose: false }), folders);
    await file.close();
    return toSource(copy, from, null);
  } catch (error) {
    await file.close();
    throw error;
  }
}

function toSource(file: FileHandle, name: string, path: string | null): Source {
  /**
   * A digest of each chunk from the first read. If a line changed after its check, it would be sent unchecked, with the request ID of its
   * old text. A change can leave the file's size and times the same, so the content is compared.
   */
  const digests: string[] = [];
  let isKnownWhole = false;
  const assertUnchanged = (n: number, digest: string | undefined) => {
    if (!isKnownWhole && digests[n] === undefined && digest !== undefined) digests.push(digest);
    if (digests[n] !== digest) throw fileChangedError(name);
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

/** Fills a buffer from a file. @returns the number of bytes read; fewer than the buffer's size only at the end of the file */
async function fill(buffer: Buffer, file: FileHandle, position: number, name: string): Promise<number> {
  for (let filled = 0; ; ) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, position + filled).catch((error: unknown) => {
      throw unreadableError(name, error);
    });
    filled += bytesRead;
    if (bytesRead === 0 || filled === buffer.length) return filled;
  }
}

/** Copies a pipe, which can be read only once, to an unnamed file. The file disappears when the command ends, even if it's killed. */
async function spool(pipe: AsyncIterable<Uint8Array>, folders: Folders): Promise<FileHandle> {
  const path = join(folders.state, `${randomUUID()}.tmp`);
  try {
    await makeFolder(folders.state);
    const file = await open(path, 'wx+', privateFile);
    await rm(path);
    for await (const chunk of pipe) await file.writeFile(chunk);
    return file;
  } catch (error) {
    throw diskError(error, `Couldn't save standard input in ${folders.state}`, `Nothing was sent. ${stateAdvice}`);
  }
}

function unreadableError(name: string, error: unknown): CallkeyError {
  const reason = typeof error === 'string' ? error : (errorCode(error) ?? String(error));
  return new CallkeyError('usage', `Couldn't read ${name} (${reason}). Check its name and permissions.`, { cause: error });
}

function fileChangedError(name: string): CallkeyError {
  return new CallkeyError(
    'conflict',
    `${name} changed while it was being read. Calls that were already placed aren't affected. Restore the original file and run the same command again.`,
    { code: 'file-changed' },
  );
}
