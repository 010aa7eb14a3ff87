import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ChangedFile, type OpenFile, openFile, toOpenFile } from '#contract/files/open-file.ts';
import { UnreadableFile } from '#contract/files/text-file.ts';
import { CallkeyError } from '../../client/errors.ts';
import { diskError, makeFolder, privateFile, stateAdvice } from '../../state/durable-file.ts';
import type { Folders } from '../../state/xdg.ts';

/** @param from a path, or `-` for standard input @throws CallkeyError `usage` */
export async function openSource(from: string, stdin: AsyncIterable<Uint8Array>, folders: Folders): Promise<OpenFile> {
  if (from === '') throw new CallkeyError('usage', '--from: specify a file, or - for standard input.');
  if (from === '-') return toOpenFile(await spool(stdin, folders), 'Standard input', null);
  return openFile(from, (pipe) => spool(pipe, folders)).catch(throwAsUsage);
}

/** @throws CallkeyError `usage` if a file can't be read, or `conflict` if it has changed since the first read */
export function throwAsUsage(error: unknown): never {
  if (!(error instanceof UnreadableFile)) throw error;
  if (!(error instanceof ChangedFile)) throw new CallkeyError('usage', error.message, { cause: error });
  const advice = "Calls that were already placed aren't affected. Restore the original file and run the same command again.";
  throw new CallkeyError('conflict', `${error.message} ${advice}`, { code: 'file-changed' });
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
