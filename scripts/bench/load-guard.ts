import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuOf, hasProc, listProcesses, treeOf } from './proc.ts';

/**
 * CPU time in ms since the machine started: total, of the bench with its child processes, of the kernel's threads, and stolen by the host.
 */
type Reading = { at: number; busy: number; own: number; kernel: number; stolen: number };

/** How many processors other work uses, and how many a virtual machine's host gives to other machines. */
export type OtherLoad = { others: number; stolen: number };

/** How many processors other work may use. */
const allowed = 0.1;
/** In ms. The windows are long, because a program that runs only briefly isn't a reason to stop. */
const window = { beforeStart: 5_000, during: 15_000 };

/** @param cpuLine the first line of /proc/stat, in hundredths of a second */
export function readingOf(cpuLine: string, at: number, own: number, kernel: number): Reading {
  const [user = 0, nice = 0, system = 0, , , , , stolen = 0] = (cpuLine.match(/\d+/g) ?? []).map((ticks) => Number(ticks) * 10);
  // Interrupts are omitted: the bench's own network traffic causes most of them, and some kernels include them in the processes' times.
  return { at, busy: user + nice + system, own, kernel, stolen };
}

export function otherLoadOf(before: Reading, after: Reading): OtherLoad {
  const per = (key: keyof Reading) => (after[key] - before[key]) / (after.at - before.at);
  return { others: Math.max(0, per('busy') - per('own') - per('kernel')), stolen: per('stolen') };
}

function read(): Reading {
  const all = listProcesses();
  const cpuLine = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '';
  // The kernel's threads descend from process 2. Most of their work, such as writing to the disk, is for the bench.
  return readingOf(cpuLine, performance.now(), cpuOf(treeOf(process.pid, all)), cpuOf(treeOf(2, all)));
}

/** Measures how busy the processors are while something runs, from 0 to 1; NaN if the system doesn't report it. */
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
  const watch = watchOtherLoad(false, window.beforeStart);
  await Promise.race([pause(2.5 * window.beforeStart), watch.broken]).finally(watch.stop);
}

/** Watches how much other work uses the processors. Sees none on systems other than Linux, because only the load average would show it. */
export function watchOtherLoad(isAllowed: boolean, every = window.during) {
  const most: OtherLoad = { others: 0, stolen: 0 };
  const { promise: broken, reject } = Promise.withResolvers<never>();
  const look = hasProc ? lookAtOthers() : () => most;
  const timer = setInterval(() => {
    const { others, stolen } = look();
    Object.assign(most, { others: Math.max(most.others, others), stolen: Math.max(most.stolen, stolen) });
    try {
      if (!isAllowed) refuseOver(others);
    } catch (error) {
      reject(error);
    }
  }, every);
  return { most, broken, stop: () => clearInterval(timer) };
}

/** @returns a function that returns the load that lasted for both of the last two windows */
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

/** Returns the lower of two loads: a process that ends while it's being measured, or a kernel thread that ends, makes one seem too high. */
export function sustained(one: OtherLoad, other: OtherLoad): OtherLoad {
  return { others: Math.min(one.others, other.others), stolen: Math.min(one.stolen, other.stolen) };
}
