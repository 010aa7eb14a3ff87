import { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { endProcesses, removeFiles } from './clean-up.ts';

// All temporary files go into one folder, which afterwards shows what was left behind. Other users can access the folder, because
// PostgreSQL doesn't run as root.
const folder = mkdtempSync(join(tmpdir(), 'callkey-tests-'));
chmodSync(folder, 0o755);
process.env['TMPDIR'] = folder;
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

const { setTimeout: realTimer } = globalThis;
const { now: realNow } = performance;

/** Fails a file that leaves anything behind. `npm test` runs several short files in one process. */
export const mochaHooks = {
  beforeAll(this: Mocha.Context): void {
    const suites = Map.groupBy(this.test?.parent?.suites ?? [], ({ file }) => file);
    for (const ofFile of suites.values()) ofFile.at(-1)?.afterAll('leaves nothing behind', expectNoLeftovers);
  },
  async afterAll(this: Mocha.Context): Promise<void> {
    try {
      // Tests outside of any suite can leave something behind as well.
      await expectNoLeftovers.call(this);
      await removeFiles();
      expectNothing(temporary());
    } finally {
      // Some leftovers would keep this process from ending.
      if (hasLeftovers) setTimeout(() => process.exit(), 1_000).unref();
    }
  },
};

async function expectNoLeftovers(this: Mocha.Context): Promise<void> {
  this.timeout(60_000);
  const forgotten = openHandles().filter(isForgotten);
  for (const child of forgotten) child.kill('SIGKILL');
  const left = forgotten.map(describeHandle);
  if (globalThis.setTimeout !== realTimer) left.push('mocked timers, with which the next file would wait forever');
  globalThis.setTimeout = realTimer;
  if (performance.now !== realNow) left.push('a mocked clock, by which the next file would wait forever');
  performance.now = realNow;
  await endProcesses();
  // Recently closed handles disappear only after a few turns of the event loop, or after seconds on a busy machine.
  for (let turn = 0; turn < 1_000 && leftOpen().length > 0; turn++) await pause(10);
  left.push(...leftOpen());
  // The files after it don't fail as well.
  knownTimers = Math.max(1, countTimers());
  for (const handle of openHandles()) {
    if (handle instanceof Server) handle.close();
    else if (handle instanceof Socket) handle.destroy();
  }
  expectNothing(left);
}

let hasLeftovers = false;

function expectNothing(left: string[]): void {
  hasLeftovers ||= left.length > 0;
  if (left.length > 0) throw new Error(`The tests left behind: ${[...new Set(left)].join(', ')}.`);
}

/** Files created by the tests and the product. Chromium, Playwright and the sound server leave their own files when they're killed. */
function temporary(): string[] {
  const names = readdirSync(folder).filter((name) => name.includes('callkey'));
  return names.map((name) => `the temporary ${name}`);
}

/** Whether this is a process that's still running, other than the database server and Chromium, which tests share and `endProcesses` ends. */
function isForgotten(handle: unknown): handle is ChildProcess {
  if (!(handle instanceof ChildProcess) || handle.exitCode !== null || handle.signalCode !== null) return false;
  return !/(?:postgres|chrom[^/]*)$/.test(handle.spawnfile);
}

/** Mocha's own timer, for this hook, and those that an earlier file has left behind. */
let knownTimers = 1;
const countTimers = () => process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;

function leftOpen(): string[] {
  const timers = countTimers();
  return [...openHandles().map(describeHandle), ...(timers > knownTimers ? [`${timers - knownTimers} timers`] : [])];
}

function describeHandle(handle: unknown): string {
  if (handle instanceof ChildProcess) return `the process ${handle.pid} (${handle.spawnargs.join(' ')})`;
  if (handle instanceof Server) return `a server at ${JSON.stringify(handle.address())}`;
  if (handle instanceof Socket && handle.remotePort === undefined) return 'a pipe';
  if (handle instanceof Socket) return `a socket from port ${handle.localPort} to ${handle.remoteAddress}:${handle.remotePort}`;
  return `a ${handle?.constructor.name}`;
}

/**
 * Returns the handles that keep this process running: processes, servers and sockets, except its own standard streams. Node.js documents
 * only their types.
 */
export function openHandles(): unknown[] {
  const handles: unknown[] = Reflect.get(process, '_getActiveHandles').call(process);
  return handles.filter((handle) => !(handle instanceof Socket && Number(Reflect.get(handle, 'fd') ?? 3) < 3));
}

/** Returns the files of a folder that this process has open, on Linux. */
export function openFilesIn(folder: string): string[] {
  return readdirSync('/dev/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/dev/fd/${fd}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      // The descriptor with which the folder was read is closed by now.
      return [];
    }
  });
}
