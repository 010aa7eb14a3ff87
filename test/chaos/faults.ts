import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, globSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { freshDirectory } from '../support/databases.ts';
import { endLater, isQuick, Skipped, type Trial } from './attack.ts';

/** Mounts a disk of this many MB that can be filled and freed. */
export function smallDisk(trial: Trial, megabytes: number): { directory: string; fill(): void; free(): void } {
  const directory = freshDirectory();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'callkey-chaos', directory], { stdio: 'ignore' });
  } catch {
    throw new Skipped('only root can mount a small disk');
  }
  endLater(trial, () => void execFileSync('umount', ['-l', directory]));
  const ballast = join(directory, 'ballast');
  return {
    directory,
    fill() {
      const file = openSync(ballast, 'a');
      for (const size of [1 << 20, 1 << 12]) while (isWritten(file, size));
      closeSync(file);
    },
    free: () => rmSync(ballast, { force: true }),
  };
}

function isWritten(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size;
  } catch {
    return false;
  }
}

/** Makes every fsync of these processes and their children fail. @returns a function that stops it */
export async function failSyncs(trial: Trial, pids: readonly number[]): Promise<() => Promise<void>> {
  const calls = 'fsync,fdatasync,sync_file_range';
  const args = ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`];
  const child = spawn('strace', [...args, ...pids.flatMap((pid) => ['-p', String(pid)])], { stdio: 'ignore' });
  endLater(trial, () => void child.kill('SIGKILL'));
  // strace prints nothing once it's attached, and exits if it can't attach.
  const ended = once(child, 'exit').catch(() => undefined);
  if ((await Promise.race([ended.then(() => 'ended'), pause(1_000)])) === 'ended') throw new Skipped('strace is missing or may not trace');
  return async () => {
    child.kill('SIGTERM');
    await ended;
  };
}

/** Lets leases expire: in the short version by changing the cores' clock, if libfaketime is installed, and otherwise by waiting. */
export function leaseClock(): { environment: Record<string, string>; passLease(): Promise<void> } {
  const beyond = dialingLimits.lease.as('seconds') + 3;
  const [library] = globSync(
    ['/usr/lib/*/faketime', '/usr/lib/faketime', '/usr/local/lib/faketime'].map((path) => `${path}/libfaketimeMT.so.1`),
  );
  if (!isQuick || library === undefined) return { environment: {}, passLease: () => pause(beyond * 1_000) };
  const file = join(freshDirectory(), 'offset');
  const setOffset = (seconds: number) => writeFileSync(file, `+${seconds}\n`);
  setOffset(0);
  // Timers keep running normally.
  const settings = { FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1', DONT_FAKE_MONOTONIC: '1' };
  return {
    environment: { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: file, ...settings },
    async passLease() {
      setOffset(beyond);
      await pause(3_000);
    },
  };
}
