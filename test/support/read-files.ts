import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Returns every file under the folder, with its content in Latin-1, which can represent any bytes. */
export function readFiles(folder: string): { path: string; text: string }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: relative(folder, path), text: readFileSync(path, 'latin1') }));
}
