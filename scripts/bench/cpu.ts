import { cpuOf, hasProc, listProcesses, mainThreadsOf, treeOf } from './proc.ts';
import { type Spread, spreadOf } from './spread.ts';
import { type Load, load, type Target } from './wrk.ts';

/** CPU time a request, in µs: of the server's main thread, of its other threads (pool, garbage collection), and of all of PostgreSQL. */
export type Cpu<Value = number> = { main: Value; rest: Value; postgres: Value };

/** Whose CPU time: the server's, and that of the PostgreSQL behind it. */
export type Watched = { pid: number; postgres: number | undefined };

export type CostedLoad = Load & { cpu: Cpu | null };

/** Loads a server, and measures what a request costs. Only Linux tells that: elsewhere `cpu` is null. */
export async function loadWithCpu(target: Target, seconds: number, watched: Watched, from = 0): Promise<CostedLoad> {
  if (!hasProc) return { ...(await load(target, seconds, from)), cpu: null };
  const before = timesOf(watched);
  const found = await load(target, seconds, from);
  const after = timesOf(watched);
  const each = (part: keyof Cpu) => ((after[part] - before[part]) * 1_000) / found.requests;
  return { ...found, cpu: { main: each('main'), rest: each('rest'), postgres: each('postgres') } };
}

/** In ms, so far. */
function timesOf({ pid, postgres }: Watched): Cpu {
  const all = listProcesses();
  const tree = treeOf(pid, all);
  const main = mainThreadsOf(tree);
  return { main, rest: cpuOf(tree) - main, postgres: postgres === undefined ? 0 : cpuOf(treeOf(postgres, all)) };
}

export function cpuSpreadOf(loads: readonly CostedLoad[]): Cpu<Spread> | null {
  const costs = loads.flatMap(({ cpu }) => cpu ?? []);
  if (costs.length === 0) return null;
  const of = (part: keyof Cpu) => spreadOf(costs.map((cost) => cost[part]));
  return { main: of('main'), rest: of('rest'), postgres: of('postgres') };
}
