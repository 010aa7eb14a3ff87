import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, globSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { freshDirectory } from '../support/databases.ts';
import { endLater, Skipped, type Trial } from './environment.ts';

/** A disk of so many MB that can be filled and freed. */
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

/** Holds a SQLite file's write lock, from a process of its own. */
export async function holdLock(trial: Trial, database: string): Promise<{ release(): Promise<void> }> {
  const holder = fileURLToPath(new URL('lock-holder.ts', import.meta.url));
  const child = spawn(process.execPath, [holder, database.slice('sqlite:'.length)], { stdio: ['pipe', 'pipe', 'inherit'] });
  killLater(trial, child);
  await once(child.stdout, 'data');
  return {
    async release() {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  };
}

/** Makes every fsync of these processes fail, and of those that they start, until it is stopped. */
export async function failSyncs(trial: Trial, pids: readonly number[]): Promise<{ stop(): Promise<void> }> {
  const calls = 'fsync,fdatasync,sync_file_range';
  const args = ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`];
  const child = spawn('strace', [...args, ...pids.flatMap((pid) => ['-p', String(pid)])], { stdio: ['ignore', 'ignore', 'pipe'] });
  killLater(trial, child);
  const said: string[] = [];
  child.stderr.on('data', (chunk) => said.push(String(chunk)));
  const failed = once(child, 'error').then(
    ([error]) => Promise.reject(error),
    (error) => Promise.reject(error),
  );
  const attached = pause(1_000).then(() => {
    if (child.exitCode !== null) throw new Error(said.join(''));
  });
  await Promise.race([attached, failed]).catch((error) => {
    throw new Skipped(`strace is missing or may not trace (${String(error instanceof Error ? error.message : error).trim()})`);
  });
  failed.catch(() => undefined);
  return {
    async stop() {
      const ended = child.exitCode === null ? once(child, 'exit') : null;
      child.kill('SIGTERM');
      await ended;
    },
  };
}

function killLater(trial: Trial, child: ChildProcess): void {
  endLater(trial, () => void child.kill('SIGKILL'));
}

const libraries = [
  '/usr/lib/*/faketime/libfaketimeMT.so.1',
  '/usr/lib/faketime/libfaketimeMT.so.1',
  '/usr/local/lib/faketime/libfaketimeMT.so.1',
];

type SettableClock = { environment: Record<string, string>; stepTo(seconds: number): void };

/** A clock that can be set while a core runs by it. Timers go on as ever. */
export function settableClock(): SettableClock {
  const library = libraries.flatMap((pattern) => globSync(pattern)).find((path) => existsSync(path));
  if (library === undefined) throw new Skipped('libfaketime is missing');
  const file = join(freshDirectory(), 'offset');
  const stepTo = (seconds: number) => writeFileSync(file, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`);
  stepTo(0);
  return {
    stepTo,
    environment: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
  };
}

/** Lets leases run out: by a clock that is set, in the short version, and otherwise by waiting. */
export function leaseClock(trial: Trial): { environment: Record<string, string>; passLease(): Promise<void> } {
  const beyond = dialingLimits.lease.as('seconds') + 3;
  const wait = async () => void (await pause(beyond * 1_000));
  if (!trial.isQuick) return { environment: {}, passLease: wait };
  try {
    const clock = settableClock();
    return {
      environment: clock.environment,
      async passLease() {
        clock.stepTo(beyond);
        await pause(3_000);
      },
    };
  } catch {
    return { environment: {}, passLease: wait };
  }
}
