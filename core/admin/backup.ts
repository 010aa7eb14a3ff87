import { closeSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { Problem } from '../domain/problem.ts';
import type { DatabaseLocation } from '../storage/database.ts';
import type { Storage } from '../storage/index.ts';
import { ended, startPostgresTool } from './postgres-tools.ts';

/** Writes a consistent copy of the database, while cores go on working. Refuses to write over a file. */
export async function backUp(storage: Storage, location: DatabaseLocation, file: string): Promise<void> {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      throw new Problem('conflict', `There is a file ${file} already. Name another one, or move it away.`);
    }
    throw new Problem('invalid', `${file} cannot be written (${error instanceof Error ? error.message : String(error)}).`);
  }
  try {
    if (location.kind === 'sqlite') await storage.database.read.raw('VACUUM INTO ?', [file]);
    else await dump(location.url, file);
    sync(file);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

/** Has the disk hold a file's or a folder's content. */
export function sync(file: string): void {
  const descriptor = openSync(file, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** PostgreSQL's own tool, in its own format: `pg_restore` reads it. */
async function dump(url: string, file: string): Promise<void> {
  await ended(startPostgresTool(url, 'pg_dump', ['--format=custom', `--file=${file}`]));
}
