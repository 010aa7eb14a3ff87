import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Whether the system describes its processes in files, as Linux does. */
export const hasProc = existsSync('/proc/self/stat');

/** CPU times are in milliseconds since the process began; `ofEnded` is that of its children that have ended. */
export type Process = { pid: number; parent: number; cpu: number; ofEnded: number };

/** In ms: the kernel counts in hundredths of a second (USER_HZ). */
const tick = 10;

/** Reads the format of `/proc/PID/stat`. */
export function parseStat(text: string): Process {
  // The second field, the program's name in parentheses, may itself have spaces and parentheses.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const sum = (one: number, other: number) => ((fields[one] ?? 0) + (fields[other] ?? 0)) * tick;
  return { pid: Number.parseInt(text, 10), parent: fields[1] ?? 0, cpu: sum(11, 12), ofEnded: sum(13, 14) };
}

export function listProcesses(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => statOf(`/proc/${pid}/stat`));
}

/** A process and all that descend from it. */
export function treeOf(root: number, all: readonly Process[]): Process[] {
  const children = all.filter(({ parent }) => parent === root);
  return [...all.filter(({ pid }) => pid === root), ...children.flatMap(({ pid }) => treeOf(pid, all))];
}

/** In ms. */
export function cpuOf(all: readonly Process[]): number {
  return all.reduce((sum, { cpu, ofEnded }) => sum + cpu + ofEnded, 0);
}

/** CPU time in ms of the main threads of some processes. */
export function mainThreadsOf(all: readonly Process[]): number {
  return all.flatMap(({ pid }) => statOf(`/proc/${pid}/task/${pid}/stat`)).reduce((sum, { cpu }) => sum + cpu, 0);
}

/** Resident memory in bytes. */
export function memoryOf(all: readonly Process[]): number {
  const kilobytes = all.map(({ pid }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0));
  return kilobytes.reduce((sum, one) => sum + one * 1_024, 0);
}

/** Nothing, if it has ended meanwhile. */
function statOf(file: string): Process[] {
  try {
    return [parseStat(readFileSync(file, 'utf8'))];
  } catch {
    return [];
  }
}
