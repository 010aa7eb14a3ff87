import { spawnSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from './commands.ts';
import { freshDirectory } from './databases.ts';

const main = fileURLToPath(new URL('../../core/main.ts', import.meta.url));

/** Starts a core that is expected to fail. @param user the user ID to run as, if the tests run as root */
export function failToStart(environment: Record<string, string>, user?: number): { status: number | null; stdout: string; stderr: string } {
  const directory = freshDirectory();
  if (user !== undefined) chownSync(directory, user, user);
  const { status, stdout, stderr } = spawnSync(process.execPath, [main], {
    env: { ...bareEnvironment, PORT: '0', MANAGEMENT_PORT: '0', ...environment },
    encoding: 'utf8',
    cwd: directory,
    // A busy machine may take this long to load the core.
    timeout: 45_000,
    ...(user === undefined ? {} : { uid: user, gid: user }),
  });
  return { status, stdout, stderr };
}
