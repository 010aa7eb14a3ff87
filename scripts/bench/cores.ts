import { cpus } from 'node:os';
import type { Stage } from './environment.ts';
import { type Figure, figure } from './figures.ts';
import { count, tableOf } from './pages.ts';
import { startCore } from './processes.ts';
import { computeRatios, inTurn, type Spread, timed } from './spread.ts';
import { load, placing } from './wrk.ts';

/** How many requests per second several cores on one PostgreSQL handle together, and how busy the processors are, from 0 to 1. */
export type Cores = { cores: number; perSecond: Spread; busy: Spread };

/** Measures one, two and four cores on one PostgreSQL, with 64 connections to each. */
export async function measureSeveralCores(stage: Stage, rounds: number): Promise<Cores[]> {
  const more = await Promise.all([1, 2, 3].map(() => startCore(stage.database)));
  const all = [stage.core, ...more];
  const measured = await inTurn({ 1: all.slice(0, 1), 2: all.slice(0, 2), 4: all }, rounds, async (cores) => {
    const together = cores.map((core) => placing({ ...stage, core }, stage.keys));
    const before = busyTime();
    const { result: loads, ms } = await timed(() => Promise.all(together.map((target) => load(target))));
    const busy = (busyTime() - before) / ms / cpus().length;
    return { perSecond: loads.reduce((sum, { perSecond }) => sum + perSecond, 0), busy };
  });
  for (const core of more) await core.stop();
  return Object.entries(measured).map(([cores, { perSecond, busy }]) => ({ cores: Number(cores), perSecond, busy }));
}

/** Returns how long all processors together have been busy, in ms. Omits interrupts. */
const busyTime = () => cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys, 0);

/** Compares two cores with one. They can handle more only if one core doesn't use all processors. */
export function compareTwoCores([one, two]: readonly Cores[]): Figure[] {
  if (!one || !two) return [];
  const ratios = computeRatios(two.perSecond, one.perSecond);
  const share = figure('two cores on one PostgreSQL, compared with one core', 'postgres', '≥ 1.7', ratios);
  if (one.busy.median <= 0.8) return [share];
  const why = `; one core and its load keep ${Math.round(one.busy.median * 100)}% of the processors busy`;
  return [{ ...share, value: share.value + why, holds: share.holds || null }];
}

export function coresTable(all: readonly Cores[]): string {
  return tableOf(all, {
    cores: ({ cores }) => String(cores),
    'placed calls per second': ({ perSecond }) => count(perSecond.median),
    range: ({ perSecond: { min, max } }) => `${count(min)} to ${count(max)}`,
    'processors busy': ({ busy }) => `${Math.round(busy.median * 100)}%`,
  });
}
