import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freshDirectory } from '../../test/support/databases.ts';
import type { Stage } from './environment.ts';
import { type Figure, ms, withRange } from './figures.ts';
import { hasProc, listProcesses, memoryOf, treeOf } from './proc.ts';
import { type Server, startCore } from './processes.ts';
import { flooding, getting, placing } from './requests.ts';
import type { Scale } from './scale.ts';
import { spreadOf } from './spread.ts';
import { type Load, load } from './wrk.ts';

/** One client alone: what it waits for beyond bare Koa and one fsync of this disk. */
export async function loneClient(stage: Stage, bare: Server, { rounds, seconds }: Scale): Promise<Figure> {
  const fsyncs = spreadOf(Array.from({ length: 300 }, fsyncOnce()));
  const beyond: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const reference = await load(getting(bare.url), seconds, 0, 1);
    const { p50 } = await load(placing(stage.core.url, stage.path, stage.keys), seconds, 0, 1);
    beyond.push(p50 - reference.p50 - fsyncs.median);
  }
  const spread = spreadOf(beyond);
  return {
    ...{ name: 'place, one client alone: p50 beyond bare Koa and one fsync', database: stage.kind, goal: '≤ 0.5 ms', spread },
    ...{ value: `${ms(spread.median)} (one fsync here: ${ms(fsyncs.median)})`, holds: spread.median <= 0.5 },
  };
}

/** @returns what writes a page at the end of a file and waits for the disk, and says how many milliseconds that took */
function fsyncOnce(): () => number {
  const file = openSync(join(freshDirectory(), 'page'), 'w');
  process.once('exit', () => closeSync(file));
  return () => {
    const start = performance.now();
    writeSync(file, Buffer.alloc(4_096));
    fdatasyncSync(file);
    return performance.now() - start;
  };
}

/** Placed calls while 16 clients try passwords, each from a network of its own. */
export async function signInFlood(stage: Stage, { rounds, seconds }: Scale): Promise<Figure[]> {
  await stage.restart({ TRUSTED_PROXIES: '127.0.0.1' });
  const place = () => load(placing(stage.core.url, stage.path, stage.keys), seconds);
  await place();
  const pairs: { quiet: Load; flooded: Load }[] = [];
  for (let round = 0; round < rounds; round++) {
    const quiet = await place();
    const [flooded] = await Promise.all([place(), load(flooding(stage.core.url), seconds, round, 16)]);
    pairs.push({ quiet, flooded });
  }
  const share = spreadOf(pairs.map(({ quiet, flooded }) => flooded.perSecond / quiet.perSecond));
  const slower = spreadOf(pairs.map(({ quiet, flooded }) => flooded.p99 / quiet.p99));
  const database = stage.kind;
  return [
    {
      ...{ name: 'place during a sign-in flood, of quiet', database, goal: '≥ 0.65', spread: share },
      value: withRange(share),
      holds: share.median >= 0.65,
    },
    { ...{ name: 'its p99, of quiet', database, goal: '≤ 2', spread: slower }, value: withRange(slower), holds: slower.median <= 2 },
  ];
}

/** What a core has taken of the machine's memory by the time that it was loaded. */
export function memory({ kind, core }: Stage): Figure[] {
  if (!hasProc) return [];
  const bytes = memoryOf(treeOf(core.pid, listProcesses()));
  return [
    { name: 'memory after these loads', database: kind, goal: '< 200 MB', value: `${Math.round(bytes / 1e6)} MB`, holds: bytes < 200e6 },
  ];
}

/** From the start of the process to the line that says that it listens, on a database that there is. */
export async function start(stage: Stage, times: number): Promise<Figure> {
  const taken: number[] = [];
  for (let n = 0; n <= times; n++) {
    const from = performance.now();
    const core = await startCore(stage.database);
    taken.push(performance.now() - from);
    await core.stop();
  }
  // The first one may have had to compile.
  const spread = spreadOf(taken.slice(1));
  return {
    ...{ name: 'start to listening', database: stage.kind, goal: '< 400 ms', spread },
    value: ms(spread.median),
    holds: spread.median < 400,
  };
}

/** The command as it is published. */
export async function help(times: number): Promise<Figure> {
  const out = freshDirectory();
  execFileSync(process.execPath, [fileURLToPath(new URL('../pack-cli.ts', import.meta.url)), out], { stdio: 'ignore' });
  const taken: number[] = [];
  for (let n = 0; n <= times; n++) {
    const from = performance.now();
    await once(spawn(process.execPath, [join(out, 'callkey/lib/main.js'), '--help'], { stdio: 'ignore' }), 'exit');
    taken.push(performance.now() - from);
  }
  const spread = spreadOf(taken.slice(1));
  return { ...{ name: 'callkey --help', database: '', goal: '< 120 ms', spread }, value: ms(spread.median), holds: spread.median < 120 };
}
