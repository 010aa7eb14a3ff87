import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Context } from '../../context.ts';

const packageName = '@callkey/cli';

/**
 * Returns the published version if it's newer than this one. Checks only if the user opts in with CALLKEY_UPDATE_NOTICE=on, never in CI.
 * Asks npm, so that the request goes to the registry that npm is configured for.
 */
export async function newerVersion({ environment, version }: Pick<Context, 'environment' | 'version'>): Promise<string | undefined> {
  if (environment['CALLKEY_UPDATE_NOTICE'] !== 'on' || environment['CI']) return undefined;
  try {
    // On Windows, only a shell finds npm.cmd. This is safe, because no part of the command comes from outside.
    const { stdout } = await promisify(execFile)('npm', ['view', packageName, 'version'], {
      timeout: 10_000,
      shell: process.platform === 'win32',
    });
    const published = stdout.trim();
    return /^\d+\.\d+\.\d+$/.test(published) && published.localeCompare(version, 'en', { numeric: true }) > 0 ? published : undefined;
  } catch {
    // A failed check must not fail the command.
    return undefined;
  }
}
