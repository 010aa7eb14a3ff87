import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder, run } from './processes.ts';

/** The measurements of one run of wrk. Times are in milliseconds. */
export type Load = { requests: number; perSecond: number; p50: number; p99: number };

/**
 * Where to send requests, the Lua script that creates them, and the share of responses that must be 2xx: all, none, or about this many;
 * null for a load that isn't measured itself.
 */
export type Target = { url: string; script: string; successes: number | null };

/** Returns the version of wrk, the load generator that uses the least processor time itself. */
export async function wrkVersion(): Promise<string> {
  // wrk prints its version, and then exits with an error.
  const version = /^wrk \S+/.exec((await run('wrk', ['--version'])).stdout)?.[0];
  if (!version) throw new Error('The bench needs wrk: apt-get install wrk, or brew install wrk.');
  return version;
}

/**
 * Loads a server for some seconds. Each connection sends its next request when its response has arrived.
 *
 * @param from for scripts that number their requests: the number before the first
 */
export async function load({ url, script, successes }: Target, seconds: number, from = 0, connections = 64): Promise<Load> {
  const file = join(freshFolder(), 'requests.lua');
  writeFileSync(file, script);
  // The straightforward servers take seconds for some responses, which count as well.
  const settings = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '--timeout', '30s', '-s', file];
  const { stdout, error } = await run('wrk', [...settings, url, '--', String(from)]);
  if (error) throw error;
  return parse(stdout, successes);
}

function parse(text: string, successes: Target['successes']): Load {
  const number = (form: RegExp) => Number(form.exec(text)?.[1] ?? 0);
  const requests = number(/(\d+) requests in/);
  const share = (requests - number(/Non-2xx or 3xx responses: (\d+)/)) / requests;
  const isAsExpected = (expected: number) =>
    Math.abs(share - expected) <= (Number.isInteger(expected) ? 0 : 0.01) && !/Socket errors/.test(text);
  if (successes !== null && !isAsExpected(successes)) throw new Error(`The responses aren't the ones that were to be measured:\n${text}`);
  return { requests, perSecond: number(/Requests\/sec:\s+([\d.]+)/), p50: millis(text, 50), p99: millis(text, 99) };
}

function millis(text: string, percentile: number): number {
  const [, value = '0', unit = 'ms'] = new RegExp(`${percentile}%\\s+([\\d.]+)(us|ms|s)`).exec(text) ?? [];
  return Number(value) * { us: 0.001, ms: 1, s: 1_000 }[unit as 'us' | 'ms' | 's'];
}
