import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Stage } from './environment.ts';
import { databaseLabel, missed, tableOf, withRange } from './pages.ts';
import { hasProc, readMegabytes } from './proc.ts';
import { bareKoa, freshFolder, packCommand, run, startCore } from './processes.ts';
import { computeRatios, computeSpread, inTurn, type Spread, timed } from './spread.ts';
import type { Row } from './workloads.ts';
import { getting, load, placing, type Target } from './wrk.ts';

/** A figure that isn't a share of bare Koa. `holds` says whether the goal is reached; null if that can't be decided on this machine. */
export type Figure = { name: string; database: string; goal: string; value: string; holds: boolean | null; spread: Spread };

export const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

/** @param goal such as `≤ 0.5 ms` */
export function figure(name: string, database: string, goal: string, spread: Spread, value = withRange(spread)): Figure {
  const limit = Number(/[\d.]+/.exec(goal)?.[0]);
  const holds = goal.startsWith('≥') ? spread.median >= limit : goal.startsWith('<') ? spread.median < limit : spread.median <= limit;
  return { name, database, goal, value, holds, spread };
}

/** Derives more figures from the first rows of one database. */
export function deriveFigures([bare, ten, thousand]: readonly Row[]): Figure[] {
  if (!bare || !ten || !thousand) return [];
  const { database } = ten;
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
export async function measureLoneClient(stage: Stage, rounds: number): Promise<Figure> {
  const fsync = fsyncMedian();
  const targets = { bare: getting(await bareKoa()), core: placing(stage, stage.keys) };
  const { bare, core } = await inTurn(targets, rounds, (target) => load(target, { connections: 1 }));
  const spread = computeSpread(core.p50.values.map((p50, round) => p50 - (bare.p50.values[round] ?? Number.NaN) - fsync));
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

/** Measures placing calls while 16 clients try passwords, each time for a different user and from a different network. */
export async function measureSignInFlood(stage: Stage, rounds: number): Promise<Figure[]> {
  const core = await startCore(stage.database, { TRUSTED_PROXIES: '127.0.0.1' });
  const signIns: Target = { server: core, kind: 'sign_in', parameters: [], successes: null };
  const { quiet, flooded } = await inTurn({ quiet: [], flooded: [signIns] }, rounds, async (floods, from) => {
    const placed = load(placing({ ...stage, core }, stage.keys));
    await Promise.all(floods.map((flood) => load(flood, { from, connections: 16 })));
    return placed;
  });
  await core.stop();
  return [
    figure('place during a sign-in flood, compared with no flood', stage.kind, '≥ 0.65', computeRatios(flooded.perSecond, quiet.perSecond)),
    figure('p99 during a sign-in flood, compared with no flood', stage.kind, '≤ 2', computeRatios(flooded.p99, quiet.p99)),
  ];
}

/** Measures how long a core with an existing database takes from the start of the process until it's listening. */
export async function measureStart({ kind, database }: Stage, rounds: number): Promise<Figure> {
  const { core } = await inTurn({ core: database }, rounds, async (url) => {
    const { result, ms } = await timed(() => startCore(url));
    await result.stop();
    return { ms };
  });
  return figure('start to listening', kind, '< 400 ms', core.ms, ms(core.ms.median));
}

/** Measures how long the published command takes to show its help. */
export async function measureHelp(rounds: number): Promise<Figure> {
  const { help } = await inTurn({ help: await packCommand() }, rounds, async (command) => {
    const { ms } = await timed(() => run(process.execPath, [command, '--help']));
    return { ms };
  });
  return figure('callkey --help', '', '< 120 ms', help.ms, ms(help.ms.median));
}

export function figureTable(figures: readonly Figure[]): string {
  return tableOf(figures, {
    '': ({ name }) => name,
    database: ({ database }) => databaseLabel(database),
    goal: ({ goal, holds }) => `${goal}${missed(holds)}`,
    measured: ({ value }) => value,
  });
}
