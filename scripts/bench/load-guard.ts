import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { hasProc, listProcesses, processTree, sumCpu } from './proc.ts';

/**
 * CPU time in ms since the machine started: total, of the bench with its child processes, of the kernel's threads, and stolen by the host.
 */
type Reading = { at: number; busy: number; own: number; kernel: number; stolen: number };

/** How many processors other programs use, and how many the host of a virtual machine gives to other machines. */
export type OtherLoad = { others: number; stolen: number };

/** In ms. The windows are long, because a program that runs only briefly isn't a reason to stop. */
const window = { beforeStart: 5_000, during: 15_000 };

/** @param cpuLine the first line of /proc/stat, in hundredths of a second */
export function parseReading(cpuLine: string, at: number, own: number, kernel: number): Reading {
  const [user = 0, nice = 0, system = 0, , , , , stolen = 0] = (cpuLine.match(/\d+/g) ?? []).map((ticks) => Number(ticks) * 10);
  // Omits interrupts, because the bench's own network traffic causes most of them, and some kernels include them in the processes' times.
  return { at, busy: user + nice + system, own, kernel, stolen };
}

export function computeOtherLoad(before: Reading, after: Reading): OtherLoad {
  const per = (key: keyof Reading) => (after[key] - before[key]) / (after.at - before.at);
  return { others: Math.max(0, per('busy') - per('own') - per('kernel')), stolen: per('stolen') };
}

function readLoad(): Reading {
  const all = listProcesses();
  const cpuLine = readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '';
  // The kernel's threads descend from process 2. Most of their work, such as writing to the disk, is for the bench.
  return parseReading(cpuLine, performance.now(), sumCpu(processTree(process.pid, all)), sumCpu(processTree(2, all)));
}

/** @param limit how many processors other programs may use */
function refuseAbove(used: number, limit: number): void {
  if (used > limit)
    throw new Error(
      `Other programs use ${used.toFixed(2)} of a processor; at most ${limit} is allowed. Stop them, then run the bench again.`,
    );
}

/** @throws Error if other programs use the processors too much */
export async function requireQuiet(): Promise<void> {
  if (!hasProc) return refuseAbove(loadavg()[0] ?? 0, 0.5);
  const watch = watchOtherLoad(false, window.beforeStart);
  await Promise.race([pause(2.5 * window.beforeStart), watch.broken]).finally(watch.stop);
}

/**
 * Watches how much other programs use the processors: for both of the last two windows. On systems other than Linux, reports none, because
 * only the load average would show it.
 */
export function watchOtherLoad(isAllowed: boolean, every = window.during) {
  const max: OtherLoad = { others: 0, stolen: 0 };
  const { promise: broken, reject } = Promise.withResolvers<never>();
  if (!hasProc) return { max, broken, stop: () => undefined };
  let before = readLoad();
  let last: OtherLoad = { ...max };
  const timer = setInterval(() => {
    const now = readLoad();
    const load = computeOtherLoad(before, now);
    const { others, stolen } = lowerLoad(last, load);
    [before, last] = [now, load];
    Object.assign(max, { others: Math.max(max.others, others), stolen: Math.max(max.stolen, stolen) });
    try {
      if (!isAllowed) refuseAbove(others, 0.1);
    } catch (error) {
      reject(error);
    }
  }, every);
  return { max, broken, stop: () => clearInterval(timer) };
}

/** Returns the lower of two loads: if a process or a kernel thread ends while it's being measured, one load seems too high. */
export function lowerLoad(a: OtherLoad, b: OtherLoad): OtherLoad {
  return { others: Math.min(a.others, b.others), stolen: Math.min(a.stolen, b.stolen) };
}
