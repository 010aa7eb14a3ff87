import { resolve } from 'node:path';

/**
 * Makes a path absolute, relative to the caller's folder. `npm run admin` first changes to the project's folder, and passes the caller's
 * folder in INIT_CWD.
 */
export function resolveCallerFile(environment: Readonly<Record<string, string | undefined>>, file: string): string {
  const { npm_lifecycle_event: script, INIT_CWD: folder } = environment;
  return script === 'admin' && folder !== undefined ? resolve(folder, file) : resolve(file);
}
