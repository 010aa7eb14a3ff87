import { fileURLToPath } from 'node:url';
import type { ServerProcess } from '../support/server-process.ts';
import { hasProc, listProcesses, postgresPid, processTree, readStat, run, sumCpu } from './processes.ts';
import { timed } from './spread.ts';

/**
 * A core, or a server that does part of its work, and the path of the place endpoint, with which the paths of the other endpoints begin.
 */
export type Endpoint = { core: ServerProcess; path: string };

export type Target = {
  server: ServerProcess;
  /** The kind of request in requests.lua, and its parameters. */
  kind: string;
  parameters: readonly string[];
  /**
   * The share of responses that must be 2xx: exactly, if it's 0 or 1, and otherwise within 0.01. Null if the responses aren't checked,
   * because the load only disturbs another one that's measured.
   */
  successes: number | null;
  seconds?: number;
  connections?: number;
  /** For requests that are numbered: the number before the first in round 0, and how many numbers each round has. */
  from?: number;
  perRound?: number;
};

/** @param key sent with each request, if the server checks one */
export function getting(server: ServerProcess, key?: string): Target {
  return { server, kind: 'get', parameters: key === undefined ? [] : [key], successes: 1 };
}

/** Places calls, and uses the keys in turn. */
export function placing({ core, path }: Endpoint, keys: readonly string[], successes = 1, contacts = 1_000): Target {
  return { server: core, kind: 'place', parameters: [path, keys.join(','), String(contacts)], successes };
}

/** Places calls with the request IDs `c1`, `c2` and so on, or cancels these calls, each once. */
export function numbered(kind: 'place_numbered' | 'cancel', { core, path, key }: Endpoint & { key: string }): Target {
  return { server: core, kind, parameters: [path, key], successes: 1 };
}

/** The measurements of one run of wrk. Times are in milliseconds. */
export type Load = { requests: number; perSecond: number; p50: number; p99: number } & Cpu;

const script = fileURLToPath(new URL('requests.lua', import.meta.url));
/** How long one load usually takes, in seconds. */
export const usualSeconds = 2;

/**
 * Loads a server with wrk, which was chosen because it uses less processor time than other load generators. Each connection sends its next
 * request when the response to its previous one has arrived.
 *
 * @throws Error if responses aren't as expected
 */
export function load(target: Target, round = 0): Promise<Load> {
  const { server, kind, parameters, successes, seconds = usualSeconds, connections = 64, from = 0, perRound = 1 } = target;
  // Waits long enough for the straightforward servers, which take seconds for some responses.
  const settings = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s', '-s', script];
  return withCpu(server.pid, async () => {
    const { stdout } = await run('wrk', [...settings, server.url, '--', kind, String(from + round * perRound), ...parameters]);
    const { requests, micros, refused, broken, p50, p99 } = JSON.parse(stdout.slice(stdout.lastIndexOf('\n')));
    if (successes !== null) {
      const deviation = Math.abs(1 - refused / requests - successes);
      const allowed = Number.isInteger(successes) ? 0 : 0.01;
      if (broken > 0 || !(deviation <= allowed)) throw new Error(`Unexpected responses:\n${stdout}`);
    }
    return { requests: Number(requests), perSecond: requests / (micros / 1e6), p50: p50 / 1_000, p99: p99 / 1_000 };
  });
}

/** CPU time per request, in µs, of the server's main thread, its other threads (pool, garbage collection), PostgreSQL, and all of them. */
type Cpu = { main: number; rest: number; postgres: number; total: number };

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
