import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** What one run of wrk has measured. Times are in milliseconds. */
export type Load = { perSecond: number; p50: number; p99: number };

/** Where to, the Lua script that makes the requests, and the share of the answers that has to be 2xx: all of them, none, or about so many. */
export type Target = { url: string; script: string; successes: number };

const run = promisify(execFile);

/** What wrk says of itself. wrk, since it takes the least of the cores for itself. */
export async function wrkVersion(): Promise<string> {
  // It says its version, and then ends as if something had been wrong.
  const { stdout = '' } = await run('wrk', ['--version']).catch((error: { stdout?: string }) => error);
  const version = /^wrk \S+/.exec(stdout)?.[0];
  if (!version) throw new Error('The bench needs wrk: apt-get install wrk, or brew install wrk.');
  return version;
}

/**
 * Loads a server for some seconds. Each connection sends its next request when it has its answer.
 *
 * @param from for scripts that number their requests: the number before the first
 */
export async function load({ url, script, successes }: Target, seconds: number, from = 0, connections = 64): Promise<Load> {
  const directory = mkdtempSync(join(tmpdir(), 'callkey-bench-'));
  const file = join(directory, 'requests.lua');
  writeFileSync(file, script);
  try {
    const { stdout } = await run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', file, url, '--', String(from)]);
    return parse(stdout, successes);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function parse(text: string, successes: Target['successes']): Load {
  const number = (form: RegExp) => Number(form.exec(text)?.[1] ?? 0);
  const requests = number(/(\d+) requests in/);
  const failed = number(/Non-2xx or 3xx responses: (\d+)/);
  const tolerance = Number.isInteger(successes) ? 0 : 0.01;
  const isAsExpected = Math.abs((requests - failed) / requests - successes) <= tolerance;
  if (requests === 0 || /Socket errors/.test(text) || !isAsExpected) {
    throw new Error(`The answers are not the ones that were to be measured:\n${text}`);
  }
  return { perSecond: number(/Requests\/sec:\s+([\d.]+)/), p50: millis(text, 50), p99: millis(text, 99) };
}

function millis(text: string, percentile: number): number {
  const [, value = '0', unit = 'ms'] = new RegExp(`${percentile}%\\s+([\\d.]+)(us|ms|s)`).exec(text) ?? [];
  return Number(value) * { us: 0.001, ms: 1, s: 1_000 }[unit as 'us' | 'ms' | 's'];
}
