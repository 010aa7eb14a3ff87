import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { track } from '../support/server-process.ts';
import { describeOrigin, type Origin, openStage } from './environment.ts';
import { count, formatDate, missed, table } from './markdown.ts';
import { parseStat, readMegabytes } from './proc.ts';
import { freshFolder, packCommand } from './processes.ts';
import type { Say } from './workloads.ts';

/** The peak memory of one run of the command in MB, and its processor time in seconds. */
type Usage = { step: string; memory: number; seconds: number };

export type LongFile = Origin & {
  lines: number;
  megabytes: number;
  runs: Usage[];
  /** In ms, from the end of the check to the core's response. */
  firstCall: number;
};

/**
 * Places a file of this many lines with the published command: checks it, places half of it, resumes, and runs the command once more. Needs
 * Linux.
 */
export async function measureLongFile(lines: number, say: Say): Promise<LongFile> {
  const origin = await describeOrigin();
  const stage = await openStage('sqlite');
  const home = freshFolder();
  const main = join(await packCommand(), 'lib', 'callkey.js');
  const { PATH = '' } = process.env;
  const env = { PATH, HOME: home, CALLKEY_SERVER: stage.core.url, CALLKEY_API_KEY: stage.key };
  const file = join(home, 'calls.csv');
  const line = (_: unknown, n: number) => `+4930${10_000_000 + n},Ada Lovelace ${n},Europe/Berlin,order-${n},"An appointment, on Monday"`;
  // The lines have request IDs, because the check compares those, too.
  const content = ['phone,name,timeZone,requestId,var.what', ...Array.from({ length: lines }, line)].join('\n');
  writeFileSync(file, content);
  const place = ['place', stage.tenants.campaign.id, '--from', file];
  const runs: Usage[] = [];
  const measure = async (step: string, args: readonly string[], stopAfter = Number.POSITIVE_INFINITY) => {
    const { stderr, results, ...usage } = await measured([main, 'call', ...args], env, stopAfter);
    say(`${step}: ${usage.memory.toFixed(0)} MB, ${usage.seconds.toFixed(0)} s, ${results} results\n${stderr.trim()}`);
    runs.push({ step, ...usage });
    if (stopAfter === Number.POSITIVE_INFINITY && results !== lines) throw new Error(`${step}: ${results} results instead of ${lines}.`);
  };
  await measure('checked, with `--dry-run`', [...place, '--dry-run']);
  await measure('placed, and stopped with Ctrl-C halfway', place, lines / 2);
  await measure('the rest, with `resume`', ['resume']);
  await measure('the same command once more', place);
  const [row] = await stage.storage.database.read('calls').count({ calls: '*' }).countDistinct({ phones: 'phone' });
  if (Number(row?.['calls']) !== lines || Number(row?.['phones']) !== lines)
    throw new Error(`${JSON.stringify(row)} calls and phone numbers instead of ${lines} of each.`);
  await stage.close();
  return { ...origin, lines, megabytes: content.length / 1e6, runs, firstCall: readFirstCall(home) };
}

async function measured(args: readonly string[], env: Record<string, string>, stopAfter: number) {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [results, isOver] = [0, false];
  const ended = track(child).then(() => {
    isOver = true;
  });
  const stderr = text(child.stderr);
  createInterface({ input: child.stdout }).on('line', () => {
    if (++results === stopAfter) child.kill('SIGINT');
  });
  let usage = { memory: 0, seconds: 0 };
  for (; !isOver; await Promise.race([ended, pause(20)])) usage = readUsage(child.pid ?? 0) ?? usage;
  return { ...usage, stderr: await stderr, results };
}

/** Reads the kernel's own figures. @returns undefined for a process that has ended */
function readUsage(pid: number): Omit<Usage, 'step'> | undefined {
  try {
    const memory = readMegabytes(pid, 'VmHWM');
    return memory === 0 ? undefined : { memory, seconds: parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8')).cpu / 1_000 };
  } catch {
    return undefined;
  }
}

/** Reads from the journal how long after the check the core placed the first call. */
function readFirstCall(home: string): number {
  const runs = join(home, '.local', 'state', 'callkey', 'runs');
  const journal = readFileSync(join(runs, readdirSync(runs)[0] ?? ''), 'utf8');
  const instant = (name: string) => Date.parse(new RegExp(`"${name}":"([^"]*)"`).exec(journal)?.[1] ?? '');
  return instant('placedAt') - instant('startedAt');
}

export function longFileSection({ at, machine, lines, megabytes, runs, firstCall }: LongFile): string {
  const peak = Math.max(...runs.map(({ memory }) => memory));
  const rows = runs.map(({ step, memory, seconds }) => [step, `${memory.toFixed(0)} MB`, `${seconds.toFixed(0)} s`]);
  return `${table([`a file of ${count(lines)} lines, ${megabytes.toFixed(0)} MB`, 'memory, at most', 'processor time'], rows)}
${formatDate(at)}, ${machine['processor']}, ${machine['node']}, with the core on the same machine: at most ${peak.toFixed(0)} MB (goal: < 200 MB${missed(peak < 200)}).
The first call was placed ${(firstCall / 1_000).toFixed(2)} s after the check (goal: ≤ 2 s${missed(firstCall <= 2_000)}).\n`;
}
