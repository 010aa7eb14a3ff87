import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { csvStart } from '#contract/files/csv.ts';
import { copyToUnnamedFile, type OpenFile, openFile } from '#contract/files/open-file.ts';
import { openText } from '#contract/files/text-file.ts';
import { Problem } from '../domain/problem.ts';
import { oneLine } from './command-line.ts';

/**
 * Makes a path absolute, relative to the caller's folder: `npm run admin` changes the folder, and passes the caller's in INIT_CWD.
 *
 * @throws Problem `invalid` if the path is empty, such as an unset variable in a script
 */
export function resolveCallerFile(environment: Readonly<Record<string, string | undefined>>, file: string): string {
  if (file === '') throw new Problem('invalid', 'The path of the file is empty. Specify one.');
  const { npm_lifecycle_event: script, INIT_CWD: folder } = environment;
  return script === 'admin' && folder !== undefined ? resolve(folder, file) : resolve(file);
}

/** Opens a file or a pipe. @throws UnreadableFile */
export function openInput(path: string): Promise<OpenFile> {
  return openFile(path, (pipe) => copyToUnnamedFile(pipe, tmpdir()));
}

/** Reads a JSON file in any of the encodings that programs write. @throws UnreadableFile, Problem `invalid` */
export async function readJson(path: string): Promise<unknown> {
  const file = await openInput(path);
  try {
    let text = '';
    for await (const chunk of (await openText(file)).chunks()) text += chunk;
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Problem('invalid', oneLine(`Couldn't parse ${path} as JSON (${error.message}).`));
  } finally {
    await file.close();
  }
}

/** Creates a file of skipped lines, which appears when it's saved. Only its owner can read it, because it may have phone numbers. */
export async function createSkippedLines(path: string) {
  const temporary = `${path}.${randomUUID()}.tmp`;
  let file: FileHandle | null = null;
  return {
    path,
    /** @param head the lines above the first one */
    async add(head: string, line: string): Promise<void> {
      if (!file) {
        file = await open(temporary, 'wx', 0o600);
        await file.write(csvStart + head);
      }
      await file.write(/[\r\n]$/.test(line) ? line : `${line}\n`);
    },
    /** @throws Problem `invalid` if there's already a file with other lines, which someone may be correcting */
    async save(): Promise<void> {
      if (!file) return;
      await file.sync();
      const existing = await readFile(path).catch(() => null);
      if (existing && !existing.equals(await readFile(temporary)))
        throw new Problem(
          'invalid',
          `${path} already exists, with other lines. Import or delete it first, or specify another file: --skip-invalid FILE.`,
        );
      await rename(temporary, path);
    },
    async close(): Promise<void> {
      await file?.close();
      await rm(temporary, { force: true });
    },
  };
}
