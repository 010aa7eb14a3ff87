import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { track } from '../support/server-process.ts';
import { describeOrigin, openStage } from './environment.ts';
import { count, formatDate, table, withGoal } from './pages.ts';
import { freshFolder, packCommand } from './processes.ts';
import { say } from './spread.ts';

/** The peak memory of one run of the command in MB, and its processor time in seconds. */
type Usage = { step: string; memory: number; seconds: number };

type LongFile = Awaited<ReturnType<typeof measureLongFile>>;

/** Places a file of this many lines with the published command: checks it, places half of it, resumes, and runs the command once more. */
export async function measureLongFile(lines: number) {
  const origin = await describeOrigin();
  await using stage = await openStage('sqlite');
  const home = freshFolder();
  const callkey = await packCommand();
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
    const command = ['--import', reportUsage, callkey, 'call', ...args];
    const child = spawn(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let results = 0;
    createInterface({ input: child.stdout }).on('line', () => {
      if (++results === stopAfter) child.kill('SIGINT');
    });
    const [output] = await Promise.all([text(child.stderr), track(child)]);
    const end = output.lastIndexOf('\n');
    const { maxRSS, userCPUTime, systemCPUTime } = JSON.parse(output.slice(end));
    const usage = { step, memory: maxRSS * 1.024e-3, seconds: (userCPUTime + systemCPUTime) / 1e6 };
    runs.push(usage);
    say(`${step}: ${usage.memory.toFixed(0)} MB, ${usage.seconds.toFixed(0)} s, ${results} results\n${output.slice(0, end).trim()}`);
    if (stopAfter === Number.POSITIVE_INFINITY && results !== lines) throw new Error(`${step}: ${results} results instead of ${lines}.`);
  };
  await measure('checked, with `--dry-run`', [...place, '--dry-run']);
  await measure('placed, and stopped with Ctrl-C halfway', place, lines / 2);
  await measure('the rest, with `resume`', ['resume']);
  await measure('the same command once more', place);
  const [row] = await stage.storage.database.read('calls').count({ calls: '*' }).countDistinct({ phones: 'phone' });
  if (Number(row?.['calls']) !== lines || Number(row?.['phones']) !== lines)
    throw new Error(`Expected ${lines} calls and as many phone numbers, but found ${JSON.stringify(row)}.`);
  return { ...origin, lines, megabytes: content.length / 1e6, runs, firstCall: readFirstCall(home) };
}

/**
 * A module that makes the command write its memory and CPU time as its last line on standard error. It also wraps `process.kill`,
 * because after Ctrl-C, the command ends itself with the same signal, without the event `exit`.
 */
const reportUsage = `data:text/javascript,import { writeSync } from 'node:fs';
  const report = () => writeSync(2, '\\n' + JSON.stringify(process.resourceUsage()));
  const kill = process.kill.bind(process);
  process.kill = (...args) => (report(), kill(...args));
  process.on('exit', report);`;

/** Reads from the journal how long after the check the core placed the first call, in ms. */
function readFirstCall(home: string): number {
  const runs = join(home, '.local', 'state', 'callkey', 'runs');
  const journal = readFileSync(join(runs, readdirSync(runs)[0] ?? ''), 'utf8');
  const instant = (name: string) => Date.parse(new RegExp(`"${name}":"([^"]*)"`).exec(journal)?.[1] ?? '');
  return instant('placedAt') - instant('startedAt');
}

export function longFileSection({ at, machine, lines, megabytes, runs, firstCall }: LongFile): string {
  const peak = Math.max(...runs.map(({ memory }) => memory));
  const rows = runs.map(({ step, memory, seconds }) => [step, `${memory.toFixed(0)} MB`, `${seconds.toFixed(0)} s`]);
  return `${table([`a file of ${count(lines)} lines, ${megabytes.toFixed(0)} MB`, 'peak memory', 'CPU time'], rows)}
${formatDate(at)}, ${machine['processor']}, ${machine['node']}, with the core on the same machine: at most ${peak.toFixed(0)} MB (goal: ${withGoal('< 200 MB', peak)}).
The first call was placed ${(firstCall / 1_000).toFixed(2)} s after the check (goal: ${withGoal('≤ 2 s', firstCall / 1_000)}).\n`;
}
