import { spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerProcess } from '../support/server-process.ts';
import type { Stage } from './environment.ts';
import { databaseLabel, missed, tableOf, withRange } from './markdown.ts';
import { hasProc, readMegabytes } from './proc.ts';
import { freshFolder, packCommand, startCore } from './processes.ts';
import { flooding, getting, placing } from './requests.ts';
import { computeRatios, computeSpread, computeSpreads, repeat, type Spread } from './spread.ts';
import { type Row, type Scale, thousandKeys } from './workloads.ts';
import { load } from './wrk.ts';

/** A figure that isn't a share of bare Koa. `holds` says whether the goal is reached; null if that can't be decided on this machine. */
export type Figure = { name: string; database: string; goal: string; value: string; holds: boolean | null; spread: Spread };

export const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

/** @param goal such as `≤ 0.5 ms` */
export function figure(name: string, database: string, goal: string, spread: Spread, value = withRange(spread)): Figure {
  const limit = Number(/[\d.]+/.exec(goal)?.[0]);
  const holds = goal.startsWith('≥') ? spread.median >= limit : goal.startsWith('<') ? spread.median < limit : spread.median <= limit;
  return { name, database, goal, value, holds, spread };
}

/** Derives more figures from the rows of one database. */
export function deriveFigures(rows: readonly Row[], database: string): Figure[] {
  const of = (name: string) => rows.find((row) => row.name === name && row.database === database);
  const [bare, ten, thousand] = [of('bare Koa'), of('place'), of(thousandKeys)];
  if (!bare || !ten || !thousand) return [];
  const { median, min, max } = ten.p99;
  const p99 = `${ms(median)} (${ms(min)} to ${ms(max)}; bare Koa: ${ms(bare.p99.median)})`;
  return [
    figure('place, p99 with 64 connections', database, '≤ 8 ms', ten.p99, p99),
    figure('place with a thousand keys in turn, compared with ten', database, '≥ 0.90', computeRatios(thousand.perSecond, ten.perSecond)),
  ];
}

/** Returns how much memory a core uses after the workloads. */
export function measureMemory({ kind, core }: Stage): Figure[] {
  if (!hasProc) return [];
  const megabytes = readMegabytes(core.pid);
  return [figure('memory after these workloads', kind, '< 200 MB', computeSpread([megabytes]), `${Math.round(megabytes)} MB`)];
}

/** Measures how much longer a single client waits for the core than for bare Koa plus one fsync on this disk. */
export async function measureLoneClient(stage: Stage, bare: ServerProcess, { rounds, seconds }: Scale): Promise<Figure> {
  const fsync = fsyncMedian();
  const spread = computeSpread(
    await repeat(rounds, async () => {
      const reference = await load(getting(bare.url), seconds, 0, 1);
      return (await load(placing(stage.core.url, stage.path, stage.keys), seconds, 0, 1)).p50 - reference.p50 - fsync;
    }),
  );
  const value = `${ms(spread.median)} (one fsync here: ${ms(fsync)})`;
  return figure("place, one client: p50 minus bare Koa's p50 and one fsync", stage.kind, '≤ 0.5 ms', spread, value);
}

/** Measures how long this disk takes to append a page to a file, in ms. */
function fsyncMedian(): number {
  const file = openSync(join(freshFolder(), 'page'), 'w');
  const times = Array.from({ length: 300 }, () => {
    const start = performance.now();
    writeSync(file, Buffer.alloc(4_096));
    fdatasyncSync(file);
    return performance.now() - start;
  });
  closeSync(file);
  return computeSpread(times).median;
}

/** Measures placing calls while 16 clients try passwords, each from its own network. */
export async function measureSignInFlood(stage: Stage, { rounds, seconds }: Scale): Promise<Figure[]> {
  await stage.restart({ TRUSTED_PROXIES: '127.0.0.1' });
  const place = () => load(placing(stage.core.url, stage.path, stage.keys), seconds);
  await place();
  const pairs = await repeat(rounds, async (round) => {
    const quiet = await place();
    const [flooded] = await Promise.all([place(), load(flooding(stage.core.url), seconds, round, 16)]);
    return { rate: flooded.perSecond / quiet.perSecond, p99: flooded.p99 / quiet.p99 };
  });
  const { rate, p99 } = computeSpreads(pairs, ['rate', 'p99']);
  return [
    figure('place during a sign-in flood, compared with no flood', stage.kind, '≥ 0.65', rate),
    figure('p99 during a sign-in flood, compared with no flood', stage.kind, '≤ 2', p99),
  ];
}

/**
 * Measures how long the work takes, in ms. Ignores the first run, which may include compiling. @param work may return a function to call
 * afterwards
 */
async function measureTime(count: number, work: () => unknown): Promise<Spread> {
  const times = await repeat(count + 1, async () => {
    const from = performance.now();
    const after = await work();
    const time = performance.now() - from;
    if (typeof after === 'function') await after();
    return time;
  });
  return computeSpread(times.slice(1));
}

/** Measures how long a core with an existing database takes from the start of the process until it's listening. */
export async function start({ kind, database }: Stage, { starts }: Scale): Promise<Figure> {
  const spread = await measureTime(starts, async () => (await startCore(database)).stop);
  return figure('start to listening', kind, '< 400 ms', spread, ms(spread.median));
}

/** Measures how long the published command takes to show its help. */
export async function measureHelp({ starts }: Scale): Promise<Figure> {
  const out = await packCommand();
  const spread = await measureTime(starts, () => spawnSync(process.execPath, [join(out, 'lib', 'main.js'), '--help'], { stdio: 'ignore' }));
  return figure('callkey --help', '', '< 120 ms', spread, ms(spread.median));
}

export function figureTable(figures: readonly Figure[]): string {
  return tableOf(figures, {
    '': ({ name }) => name,
    database: ({ database }) => databaseLabel(database),
    goal: ({ goal, holds }) => `${goal}${missed(holds)}`,
    measured: ({ value }) => value,
  });
}
