import { execFileSync } from 'node:child_process';
import { freshDirectory } from './databases.ts';
import { skip } from './skip.ts';

/** Mounts a disk in memory, or skips the test without root. @param options such as `size=3m` @returns its folder, which the test unmounts */
export function mountDisk(test: Mocha.Context, options: string, directory = freshDirectory()): string {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'callkey-test', directory], { stdio: 'ignore' });
  } catch {
    skip(test, 'only root can mount a disk');
  }
  return directory;
}
