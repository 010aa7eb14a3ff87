import { fileURLToPath } from 'node:url';
import { run } from './processes.ts';
import type { Target } from './requests.ts';

/** The measurements of one run of wrk. Times are in milliseconds. */
export type Load = { requests: number; perSecond: number; p50: number; p99: number };

/** Returns the version of wrk, which was chosen because it uses less processor time than other load generators. */
export async function wrkVersion(): Promise<string> {
  // wrk prints its version, and then exits with an error.
  const version = /^wrk \S+/.exec((await run('wrk', ['--version'])).stdout)?.[0];
  if (!version) throw new Error('The bench needs wrk: apt-get install wrk, or brew install wrk.');
  return version;
}

const script = fileURLToPath(new URL('requests.lua', import.meta.url));

/**
 * Loads a server for some seconds. Each connection sends its next request when its response has arrived.
 *
 * @param from for scripts that number their requests: the number before the first
 * @throws Error if the responses aren't the expected ones
 */
export async function load({ url, kind, parameters, successes }: Target, seconds: number, from = 0, connections = 64): Promise<Load> {
  // Waits long enough for the straightforward servers, which take seconds for some responses.
  const settings = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s', '-s', script];
  const command = [...settings, url, '--', kind, String(from), ...parameters];
  const { stdout, error } = await run('wrk', command);
  if (error) throw error;
  const { requests, micros, refused, broken, p50, p99 } = JSON.parse(stdout.slice(stdout.lastIndexOf('\n')));
  if (successes !== null) {
    const deviation = Math.abs(1 - refused / requests - successes);
    const allowed = Number.isInteger(successes) ? 0 : 0.01;
    if (broken > 0 || !(deviation <= allowed)) throw new Error(`Unexpected responses:\n${stdout}`);
  }
  return { requests, perSecond: requests / (micros / 1e6), p50: p50 / 1_000, p99: p99 / 1_000 };
}
