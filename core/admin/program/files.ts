import { resolve } from 'node:path';

/**
 * Makes a file's path absolute, as seen from the caller's folder. `npm run admin` changes to the project's folder first, and says in INIT_CWD
 * where the caller is.
 */
export function fileOfCaller(environment: Readonly<Record<string, string | undefined>>, file: string): string {
  const { npm_lifecycle_event: script, INIT_CWD: folder } = environment;
  return script === 'admin' && folder !== undefined ? resolve(folder, file) : resolve(file);
}
