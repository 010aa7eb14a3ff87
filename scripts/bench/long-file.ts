import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freshDirectory } from '../../test/support/databases.ts';
import { openStage, type Stage } from './environment.ts';
import { commitOf, type Machine, machineOf } from './machine.ts';
import { parseStat } from './proc.ts';
import { run, track } from './processes.ts';

/** What one run of the command took: memory in MB at its highest, and seconds of a processor. */
export type Taken = { what: string; memory: number; seconds: number };

export type LongFile = {
  at: string;
  commit: string;
  machine: Machine;
  lines: number;
  megabytes: number;
  runs: Taken[];
  /** In ms, from the end of the check to the core's answer. */
  firstCall: number;
};

type Command = { main: string; stage: Stage; file: string; home: string };
type Ended = Taken & { stderr: string; results: number };

/** Places a file of so many lines by the command as it is published: checked alone, stopped half way, resumed, and run once more. Needs Linux. */
export async function longFile(lines: number, say: (line: string) => void): Promise<LongFile> {
  const about = { at: new Date().toISOString(), commit: await commitOf(), machine: await machineOf() };
  const stage = await openStage('sqlite');
  const home = freshDirectory();
  const command: Command = { main: await packedCommand(), stage, file: join(home, 'calls.csv'), home };
  const text = fileOf(lines);
  writeFileSync(command.file, text);
  const place = ['place', stage.tenants.campaign.id, '--from', command.file];
  const runs: Taken[] = [];
  const measure = async (what: string, args: readonly string[], stopAfter = Infinity) => {
    const { stderr, results, ...taken } = await measured(command, what, args, stopAfter);
    say(`${what}: ${taken.memory.toFixed(0)} MB, ${taken.seconds.toFixed(0)} s, ${results} results\n${stderr.trim()}`);
    runs.push(taken);
    if (stopAfter === Infinity && results !== lines) throw new Error(`${what}: ${results} results instead of ${lines}.`);
  };
  await measure('checked, with `--dry-run`', [...place, '--dry-run']);
  await measure('placed, until Ctrl-C half way', place, lines / 2);
  await measure('the rest, with `resume`', ['resume']);
  await measure('the same command once more', place);
  const [row] = await stage.direct.storage.database.read('calls').count({ calls: '*' }).countDistinct({ phones: 'phone' });
  if (Number(row?.['calls']) !== lines || Number(row?.['phones']) !== lines)
    throw new Error(`${JSON.stringify(row)}, not ${lines} once each.`);
  await stage.close();
  return { ...about, lines, megabytes: text.length / 1e6, runs, firstCall: firstCallOf(home) };
}

function fileOf(lines: number): string {
  const line = (_: unknown, n: number) => `+4930${10_000_000 + n},Ada Lovelace ${n},Europe/Berlin,order-${n},"An appointment, on Monday"`;
  // With request ids, which the check compares, too.
  return ['phone,name,timeZone,requestId,var.what', ...Array.from({ length: lines }, line)].join('\n');
}

/** @returns the path of the bundled command */
async function packedCommand(): Promise<string> {
  const folder = freshDirectory();
  const { error } = await run(process.execPath, [fileURLToPath(new URL('../pack-cli.ts', import.meta.url)), folder]);
  if (error) throw error;
  return join(folder, 'callkey', 'lib', 'callkey.js');
}

async function measured({ main, stage, home }: Command, what: string, args: readonly string[], stopAfter: number): Promise<Ended> {
  const { PATH = '' } = process.env;
  const env = { PATH, HOME: home, CALLKEY_SERVER: stage.core.url, CALLKEY_API_KEY: stage.keys[0] };
  const child = spawn(process.execPath, [main, 'call', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  track(child);
  let taken = { memory: 0, seconds: 0 };
  let [results, stderr, isOver] = [0, '', false];
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  createInterface({ input: child.stdout }).on('line', () => {
    if (++results === stopAfter) child.kill('SIGINT');
  });
  const ended = once(child, 'close').then(() => {
    isOver = true;
  });
  for (; !isOver; await Promise.race([ended, wait(20)])) taken = takenBy(child.pid) ?? taken;
  return { what, ...taken, stderr, results };
}

/** As the kernel keeps it. @returns undefined for a process that has ended */
function takenBy(pid: number | undefined): Omit<Taken, 'what'> | undefined {
  try {
    const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    if (kilobytes === undefined) return undefined;
    const { cpu } = parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    return { memory: (Number(kilobytes) * 1_024) / 1e6, seconds: cpu / 1_000 };
  } catch {
    return undefined;
  }
}

/** The journal has when the check was over, and when the core has placed the first call. */
function firstCallOf(home: string): number {
  const runs = join(home, '.local', 'state', 'callkey', 'runs');
  const [name = ''] = readdirSync(runs);
  const [, startedAt = ''] = /"startedAt":"([^"]*)"/.exec(readFileSync(join(runs, name), 'utf8')) ?? [];
  const [, placedAt = ''] = /"placedAt":"([^"]*)"/.exec(readFileSync(join(runs, name), 'utf8')) ?? [];
  return Date.parse(placedAt) - Date.parse(startedAt);
}
