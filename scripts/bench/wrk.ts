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

/** Prints the measurements as JSON. Times are in microseconds. */
const report = `
function done(summary, latency)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('\\n{"requests":%d,"micros":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d}',
    summary.requests, summary.duration, errors.status, broken, latency:percentile(50), latency:percentile(99)))
end`;

/**
 * Loads a server for some seconds. Each connection sends its next request when its response has arrived.
 *
 * @param from for scripts that number their requests: the number before the first
 * @throws Error if the responses aren't the expected ones
 */
export async function load({ url, script, successes }: Target, seconds: number, from = 0, connections = 64): Promise<Load> {
  const file = join(freshFolder(), 'requests.lua');
  writeFileSync(file, script + report);
  // The straightforward servers take seconds for some responses, which count as well.
  const settings = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s', '-s', file];
  const { stdout, error } = await run('wrk', [...settings, url, '--', String(from)]);
  if (error) throw error;
  const { requests, micros, refused, broken, p50, p99 } = JSON.parse(stdout.slice(stdout.lastIndexOf('\n')));
  if (successes !== null) {
    const deviation = Math.abs(1 - refused / requests - successes);
    const allowed = Number.isInteger(successes) ? 0 : 0.01;
    if (broken > 0 || !(deviation <= allowed)) throw new Error(`Unexpected responses:\n${stdout}`);
  }
  return { requests, perSecond: requests / (micros / 1e6), p50: p50 / 1_000, p99: p99 / 1_000 };
}
