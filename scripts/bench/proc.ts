import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { postgresPid } from './processes.ts';
import { timed } from './spread.ts';

/** Whether the system has /proc, where Linux describes its processes. */
export const hasProc = existsSync('/proc/self/stat');

/** CPU time is in ms since the process started, with that of its children that have ended. */
type Process = { pid: number; parent: number; cpu: number };

/** In ms. The kernel counts in hundredths of a second (USER_HZ). */
const tick = 10;

/** Reads the format of `/proc/PID/stat`. */
export function parseStat(text: string): Process {
  // The second field, the program's name in parentheses, may itself contain spaces and parentheses.
  const [, parent = 0, ...fields] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(9);
  return { pid: Number.parseInt(text, 10), parent, cpu: (user + system + endedUser + endedSystem) * tick };
}

/** Returns nothing if the process has ended by now. */
function readStat(file: string): Process[] {
  try {
    return [parseStat(readFileSync(file, 'utf8'))];
  } catch {
    return [];
  }
}

export function listProcesses(): Process[] {
  return readdirSync('/proc').flatMap((pid) => (/^\d+$/.test(pid) ? readStat(`/proc/${pid}/stat`) : []));
}

/** Returns a process and all its descendants. */
export function processTree(root: number, all: readonly Process[]): Process[] {
  const children = all.filter(({ parent }) => parent === root);
  return [...all.filter(({ pid }) => pid === root), ...children.flatMap(({ pid }) => processTree(pid, all))];
}

/** In ms. */
export const sumCpu = (all: readonly Process[]) => all.reduce((sum, { cpu }) => sum + cpu, 0);

/** Returns how much memory a process and its descendants use, in MB. */
export function readMegabytes(root: number): number {
  const texts = processTree(root, listProcesses()).map(({ pid }) => readFileSync(`/proc/${pid}/status`, 'utf8'));
  return texts.reduce((sum, text) => sum + Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) * 1.024e-3, 0);
}

/** CPU time per request, in µs, of the server's main thread, its other threads (pool, garbage collection), PostgreSQL, and all of them. */
export type Cpu = { main: number; rest: number; postgres: number; total: number };

/**
 * Does some work, and adds its speed and the CPU time that a server and PostgreSQL used for it to its result. Only Linux reports CPU time;
 * elsewhere, it's NaN.
 */
export async function withCpu<Result extends { requests: number }>(pid: number, work: () => Promise<Result>) {
  const before = readCpuTimes(pid);
  const { result, ms } = await timed(work);
  const after = readCpuTimes(pid);
  const each = (part: keyof Cpu) => ((after[part] - before[part]) * 1_000) / result.requests;
  const cpu: Cpu = { main: each('main'), rest: each('rest'), postgres: each('postgres'), total: each('total') };
  return { perSecond: (result.requests / ms) * 1_000, ...result, ...cpu };
}

/** Returns the CPU times so far, in ms. */
function readCpuTimes(pid: number): Cpu {
  if (!hasProc) return { main: Number.NaN, rest: Number.NaN, postgres: Number.NaN, total: Number.NaN };
  const all = listProcesses();
  const tree = processTree(pid, all);
  const main = sumCpu(tree.flatMap(({ pid }) => readStat(`/proc/${pid}/task/${pid}/stat`)));
  const [server, postgres] = [sumCpu(tree), sumCpu(processTree(postgresPid() ?? Number.NaN, all))];
  return { main, rest: server - main, postgres, total: server + postgres };
}

/**
 * CPU time in ms since the machine started. `busy`: of all programs. `own`: of the bench, its child processes and the kernel's threads.
 * `stolen`: what the host of a virtual machine gave to other machines.
 */
type Reading = { at: number; busy: number; own: number; stolen: number };

/**
 * Returns how long all processors together have been busy, in ms. Omits interrupts, because the bench's own network traffic causes most of
 * them, and some kernels include them in the processes' times.
 */
export const busyTime = () => cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys, 0);

/** How many processors other programs use, and how many the host of a virtual machine gives to other machines. */
export type OtherLoad = { others: number; stolen: number };

function readLoad(): Reading {
  const all = listProcesses();
  // The kernel's threads descend from process 2. Most of their work, such as writing to the disk, is for the bench.
  const own = sumCpu([...processTree(process.pid, all), ...processTree(2, all)]);
  const stolen = Number(/^cpu(?: +\d+){7} +(\d+)/.exec(readFileSync('/proc/stat', 'utf8'))?.[1]) * tick;
  return { at: performance.now(), busy: busyTime(), own, stolen };
}

export function computeOtherLoad(before: Reading, after: Reading): OtherLoad {
  const per = (key: keyof Reading) => (after[key] - before[key]) / (after.at - before.at);
  return { others: Math.max(0, per('busy') - per('own')), stolen: per('stolen') };
}

/** Returns the lower of two loads: if a process or a kernel thread ends while it's being measured, one load seems too high. */
export function lowerLoad(a: OtherLoad, b: OtherLoad): OtherLoad {
  return { others: Math.min(a.others, b.others), stolen: Math.min(a.stolen, b.stolen) };
}

/**
 * Measures every 15 seconds how many processors other programs use. Only a load that lasts for two measurements in a row counts, because a
 * program that runs only briefly isn't a reason to stop. `broken` rejects if the load is too high. On systems other than Linux, this only
 * checks the load average once.
 */
export function watchOtherLoad(isAllowed: boolean) {
  const max: OtherLoad = { others: 0, stolen: 0 };
  const { promise: broken, reject } = Promise.withResolvers<never>();
  const refuseAbove = (limit: number, used: number) => {
    const message = `Other programs are using ${used.toFixed(2)} processors; the limit is ${limit}. Stop them, then run the bench again.`;
    if (used > limit && !isAllowed) reject(new Error(message));
  };
  if (!hasProc) {
    refuseAbove(0.5, loadavg()[0] ?? 0);
    return { max, broken, stop: () => undefined };
  }
  let before = readLoad();
  let last = { ...max };
  const timer = setInterval(() => {
    const now = readLoad();
    const load = computeOtherLoad(before, now);
    const { others, stolen } = lowerLoad(last, load);
    [before, last] = [now, load];
    Object.assign(max, { others: Math.max(max.others, others), stolen: Math.max(max.stolen, stolen) });
    refuseAbove(0.1, others);
  }, 15_000);
  return { max, broken, stop: () => clearInterval(timer) };
}
