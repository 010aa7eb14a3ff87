import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { postgresPid } from './processes.ts';
import { timed } from './spread.ts';

/** Whether the system has /proc, where Linux describes its processes. */
export const hasProc = existsSync('/proc/self/stat');

/** CPU times are in milliseconds since the process started; `endedChildren` is the time of its children that have ended. */
type Process = { pid: number; parent: number; cpu: number; endedChildren: number };

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
  return { pid: Number.parseInt(text, 10), parent, cpu: (user + system) * tick, endedChildren: (endedUser + endedSystem) * tick };
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
export function sumCpu(all: readonly Process[]): number {
  return all.reduce((sum, { cpu, endedChildren }) => sum + cpu + endedChildren, 0);
}

/** Returns how much memory a process and its descendants use, in MB. */
export function readMegabytes(root: number): number {
  const texts = processTree(root, listProcesses()).map(({ pid }) => readFileSync(`/proc/${pid}/status`, 'utf8'));
  return texts.reduce((sum, text) => sum + Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) * 1.024e-3, 0);
}

/** CPU time per request, in µs, of the server's main thread, its other threads (pool, garbage collection), PostgreSQL, and all of them. */
export type Cpu = { main: number; rest: number; postgres: number; total: number };

/** Adds its speed, and the CPU time of a server and of PostgreSQL, to the result of some work. Only Linux reports CPU time; elsewhere, it's NaN. */
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
