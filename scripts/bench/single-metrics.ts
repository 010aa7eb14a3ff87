import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnCore } from '../../test/support/core.ts';
import { freshDirectory } from '../../test/support/databases.ts';
import type { Stage } from './environment.ts';
import type { Server } from './processes.ts';
import { flooding, getting, placing } from './requests.ts';
import { type Row, type Spread, spreadOf } from './workloads.ts';
import { type Load, load } from './wrk.ts';

/** A figure that is not a share of bare Koa. `holds` says whether the goal is reached. */
export type Figure = { name: string; database: string; goal: string; value: string; holds: boolean; spread?: Spread };

const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

/** One client alone: what it waits for beyond bare Koa and one fsync of this disk. */
export async function loneClient(stage: Stage, bare: Server, rounds: number): Promise<Figure> {
  const fsyncs = spreadOf(Array.from({ length: 300 }, fsyncOnce()));
  const beyond: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const reference = await load(getting(bare.url), 2, 0, 1);
    const { p50 } = await load(placing(stage.core.url, stage.path, stage.keys), 2, 0, 1);
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
export async function signInFlood(stage: Stage, rounds: number, seconds: number): Promise<Figure[]> {
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
      value: share.median.toFixed(2),
      holds: share.median >= 0.65,
    },
    { ...{ name: 'its p99, of quiet', database, goal: '≤ 2', spread: slower }, value: slower.median.toFixed(2), holds: slower.median <= 2 },
  ];
}

/** What a core has taken of the machine's memory by the time that it was loaded. */
export function memory({ kind, core }: Stage): Figure {
  const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${core.child.pid}/status`, 'utf8'))?.[1]) * 1_024;
  return { name: 'memory after these loads', database: kind, goal: '< 200 MB', value: `${Math.round(rss / 1e6)} MB`, holds: rss < 200e6 };
}

/** From the start of the process to the line that says that it listens, on a database that there is. */
export async function start(stage: Stage, times: number): Promise<Figure> {
  const taken: number[] = [];
  for (let n = 0; n <= times; n++) {
    const from = performance.now();
    const core = await spawnCore(stage.database);
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

/** One, two and four cores on one PostgreSQL, with 64 connections to each. */
export async function severalCores(stage: Stage, rounds: number, seconds: number): Promise<{ cores: number; perSecond: Spread }[]> {
  const cores = [stage.core, ...(await Promise.all([1, 2, 3].map(() => spawnCore(stage.database))))];
  const together = async (count: number) => {
    const loads = await Promise.all(cores.slice(0, count).map(({ url }) => load(placing(url, stage.path, stage.keys), seconds)));
    return loads.reduce((sum, { perSecond }) => sum + perSecond, 0);
  };
  await together(4);
  const found = new Map([1, 2, 4].map((count) => [count, [] as number[]]));
  for (let round = 0; round < rounds; round++) for (const [count, sums] of found) sums.push(await together(count));
  await Promise.all(cores.slice(1).map((core) => core.stop()));
  return [...found].map(([count, sums]) => ({ cores: count, perSecond: spreadOf(sums) }));
}

export function placeP99(rows: readonly Row[], database: string): Figure {
  const p99Of = (name: string) => rows.find((row) => row.name === name && row.database === database)?.p99.median ?? Number.NaN;
  const p99 = p99Of('place');
  const value = `${ms(p99)} (bare Koa: ${ms(p99Of('bare Koa'))})`;
  return { name: 'place, p99 with 64 connections', database, goal: '≤ 8 ms', value, holds: p99 <= 8 };
}
