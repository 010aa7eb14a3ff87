import type { Stage } from './environment.ts';
import { type Figure, figure } from './figures.ts';
import { busyDuring } from './load-guard.ts';
import { count, tableOf } from './markdown.ts';
import { startCore } from './processes.ts';
import { placing } from './requests.ts';
import { computeRatios, computeSpreads, inTurn, type Spread } from './spread.ts';
import type { Scale } from './workloads.ts';
import { load } from './wrk.ts';

/** How many requests per second several cores on one PostgreSQL handle together, and how busy the processors are, from 0 to 1. */
export type Cores = { cores: number; perSecond: Spread; busy: Spread };

/** Measures one, two and four cores on one PostgreSQL, with 64 connections to each. */
export async function measureSeveralCores(stage: Stage, { rounds, seconds }: Scale): Promise<Cores[]> {
  const cores = [stage.core, ...(await Promise.all([1, 2, 3].map(() => startCore(stage.database))))];
  const together = async (count: number) => {
    const loads = cores.slice(0, count).map(({ url }) => load(placing(url, stage.path, stage.keys), seconds));
    return (await Promise.all(loads)).reduce((sum, { perSecond }) => sum + perSecond, 0);
  };
  await together(4);
  const all = await inTurn([1, 2, 4], rounds, async (count) => {
    const { result: perSecond, busy } = await busyDuring(() => together(count));
    return { perSecond, busy };
  });
  await Promise.all(cores.slice(1).map((core) => core.stop()));
  return all.map(({ item, results }) => ({ cores: item, ...computeSpreads(results, ['perSecond', 'busy']) }));
}

/** Compares two cores with one. They can handle more only if one core doesn't use all processors. */
export function compareTwoCores([one, two]: readonly Cores[]): Figure[] {
  if (!one || !two) return [];
  const share = figure(
    'two cores on one PostgreSQL, compared with one core',
    'postgres',
    '≥ 1.7',
    computeRatios(two.perSecond, one.perSecond),
  );
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
