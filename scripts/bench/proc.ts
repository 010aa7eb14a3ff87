import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Target } from './requests.ts';
import { computeSpreads, type Spread } from './spread.ts';
import { type Load, load } from './wrk.ts';

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

/** Reads a size such as VmRSS from `/proc/PID/status`, in MB. Returns the sum for the process and its descendants. */
export function readMegabytes(root: number, name = 'VmRSS'): number {
  const texts = processTree(root, listProcesses()).map(({ pid }) => readFileSync(`/proc/${pid}/status`, 'utf8'));
  return texts.reduce((sum, text) => sum + Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? 0) * 1.024e-3, 0);
}

/** CPU time per request, in µs, of the server's main thread, its other threads (pool, garbage collection), and all of PostgreSQL. */
export type Cpu<Value = number> = { main: Value; rest: Value; postgres: Value };
export type CostedLoad = Load & { cpu: Cpu | null };

/** The processes to measure: the server, and the PostgreSQL behind it. */
type Watched = { pid: number; postgres: number | undefined };

/** Loads a server, and measures the CPU time per request. Only Linux reports that; elsewhere, `cpu` is null. */
export async function loadWithCpu(target: Target, seconds: number, watched: Watched, from = 0): Promise<CostedLoad> {
  const { result, getCpu } = await watchCpu(watched, () => load(target, seconds, from));
  return { ...result, cpu: getCpu(result.requests) };
}

/** @returns the result of the work, how long it took, and a function that returns the CPU time per request */
export async function watchCpu<Result>(watched: Watched, work: () => Promise<Result>) {
  const before = hasProc ? readCpuTimes(watched) : null;
  const from = performance.now();
  const result = await work();
  const seconds = (performance.now() - from) / 1_000;
  const after = before && readCpuTimes(watched);
  const getCpu = (requests: number): Cpu | null => {
    if (!before || !after) return null;
    const each = (part: keyof Cpu) => ((after[part] - before[part]) * 1_000) / requests;
    return { main: each('main'), rest: each('rest'), postgres: each('postgres') };
  };
  return { result, seconds, getCpu };
}

/** Returns the CPU times so far, in ms. */
function readCpuTimes({ pid, postgres }: Watched): Cpu {
  const all = listProcesses();
  const tree = processTree(pid, all);
  const main = tree.flatMap(({ pid }) => readStat(`/proc/${pid}/task/${pid}/stat`)).reduce((sum, { cpu }) => sum + cpu, 0);
  return { main, rest: sumCpu(tree) - main, postgres: postgres === undefined ? 0 : sumCpu(processTree(postgres, all)) };
}

export function computeCpuSpread(loads: readonly CostedLoad[]): Cpu<Spread> | null {
  const costs = loads.flatMap(({ cpu }) => cpu ?? []);
  return costs.length === 0 ? null : computeSpreads(costs, ['main', 'rest', 'postgres']);
}
