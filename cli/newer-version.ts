import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Context } from './context.ts';

const packageName = '@callkey/cli';

/**
 * The published version, where it is newer than this one. It asks only where the user wants it, with CALLKEY_UPDATE_NOTICE=on, and never
 * in CI; and it asks npm, so that the request goes to the registry that npm is set up for.
 */
export async function newerVersion({ environment, version }: Pick<Context, 'environment' | 'version'>): Promise<string | undefined> {
  if (environment['CALLKEY_UPDATE_NOTICE'] !== 'on' || environment['CI']) return undefined;
  try {
    // A shell finds npm.cmd on Windows. No part of the command comes from outside.
    const { stdout } = await promisify(execFile)('npm', ['view', packageName, 'version'], {
      timeout: 10_000,
      shell: process.platform === 'win32',
    });
    const published = stdout.trim();
    return /^\d+\.\d+\.\d+$/.test(published) && published.localeCompare(version, 'en', { numeric: true }) > 0 ? published : undefined;
  } catch {
    // A notice is no reason to fail.
    return undefined;
  }
}
