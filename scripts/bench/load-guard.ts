import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuOf, hasProc, listProcesses, treeOf } from './proc.ts';

/** CPU time in ms since the machine started: of everything, of the bench with all that it started, of the kernel's threads, and what the host took away. */
type Reading = { at: number; busy: number; own: number; kernel: number; stolen: number };

/** In processors: what other work uses, and what the host of a virtual machine gives to others. */
export type OtherLoad = { others: number; stolen: number };

/** In processors. */
const allowed = 0.1;
/** In ms: a program that runs for a moment is no reason to stop. */
const window = { beforeStart: 5_000, during: 15_000 };

/** @param cpuLine the first line of /proc/stat, in hundredths of a second */
export function readingOf(cpuLine: string, at: number, own: number, kernel: number): Reading {
  const [user = 0, nice = 0, system = 0, , , , , stolen = 0] = (cpuLine.match(/\d+/g) ?? []).map((ticks) => Number(ticks) * 10);
  // Interrupts are left out: most of them are of the bench's own network traffic, and some kernels count them within the processes.
  return { at, busy: user + nice + system, own, kernel, stolen };
}

export function otherLoadOf(before: Reading, after: Reading): OtherLoad {
  const per = (key: keyof Reading) => (after[key] - before[key]) / (after.at - before.at);
  return { others: Math.max(0, per('busy') - per('own') - per('kernel')), stolen: per('stolen') };
}

function read(): Reading {
  const all = listProcesses();
  const cpuLine = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '';
  // The kernel's threads descend from number 2. What they do, such as writing to the disk, is mostly done for the bench.
  return readingOf(cpuLine, performance.now(), cpuOf(treeOf(process.pid, all)), cpuOf(treeOf(2, all)));
}

/** How busy the processors are while something runs, from 0 to 1; NaN if the system doesn't tell. */
export async function busyDuring<Result>(work: () => Promise<Result>): Promise<{ result: Result; busy: number }> {
  if (!hasProc) return { result: await work(), busy: Number.NaN };
  const before = read();
  const result = await work();
  const after = read();
  return { result, busy: (after.busy - before.busy) / (after.at - before.at) / availableParallelism() };
}

function refuseOver(used: number, limit = allowed): void {
  if (used > limit)
    throw new Error(`Other work uses ${used.toFixed(2)} of a processor; at most ${limit} is allowed. Stop it, and run the bench again.`);
}

/** @throws Error if the machine does other work */
export async function requireQuiet(): Promise<void> {
  if (!hasProc) return refuseOver(loadavg()[0] ?? 0, 0.5);
  const look = lookAtOthers();
  await pause(window.beforeStart);
  look();
  await pause(window.beforeStart);
  refuseOver(look().others);
}

/** Watches what other work uses. On other systems than Linux, where only the load average shows it, it sees nothing. */
export function watchOtherLoad(isAllowed: boolean): { most: OtherLoad; broken: Promise<never>; stop: () => void } {
  const most: OtherLoad = { others: 0, stolen: 0 };
  const { promise: broken, reject } = Promise.withResolvers<never>();
  if (!hasProc) return { most, broken, stop: () => undefined };
  const look = lookAtOthers();
  const timer = setInterval(() => {
    const { others, stolen } = look();
    Object.assign(most, { others: Math.max(most.others, others), stolen: Math.max(most.stolen, stolen) });
    try {
      if (!isAllowed) refuseOver(others);
    } catch (error) {
      reject(error);
    }
  }, window.during);
  return { most, broken, stop: () => clearInterval(timer) };
}

/** @returns what gives the load that both of the last two windows had */
function lookAtOthers(): () => OtherLoad {
  let before = read();
  let last: OtherLoad = { others: 0, stolen: 0 };
  return () => {
    const now = read();
    const load = otherLoadOf(before, now);
    const both = sustained(last, load);
    [before, last] = [now, load];
    return both;
  };
}

/** A process that ends while it's looked at, and a thread of the kernel that ends at any time, make one window seem busier than it was. */
export function sustained(one: OtherLoad, other: OtherLoad): OtherLoad {
  return { others: Math.min(one.others, other.others), stolen: Math.min(one.stolen, other.stolen) };
}
