import type { Stage } from './environment.ts';
import { busyDuring } from './load-guard.ts';
import { startCore } from './processes.ts';
import { placing } from './requests.ts';
import type { Scale } from './scale.ts';
import { type Spread, spreadOf } from './spread.ts';
import { load } from './wrk.ts';

/** What so many cores on one PostgreSQL do together, and how busy they keep the processors, from 0 to 1. */
export type Cores = { cores: number; perSecond: Spread; busy: Spread };

/** One, two and four cores on one PostgreSQL, with 64 connections to each. */
export async function severalCores(stage: Stage, { rounds, seconds }: Scale): Promise<Cores[]> {
  const cores = [stage.core, ...(await Promise.all([1, 2, 3].map(() => startCore(stage.database))))];
  const together = async (count: number) => {
    const loads = cores.slice(0, count).map(({ url }) => load(placing(url, stage.path, stage.keys), seconds));
    return (await Promise.all(loads)).reduce((sum, { perSecond }) => sum + perSecond, 0);
  };
  await together(4);
  const found = [1, 2, 4].map((count) => ({ count, sums: [] as number[], busy: [] as number[] }));
  for (let round = 0; round < rounds; round++) {
    for (const { count, sums, busy } of found) {
      const measured = await busyDuring(() => together(count));
      sums.push(measured.result);
      busy.push(measured.busy);
    }
  }
  await Promise.all(cores.slice(1).map((core) => core.stop()));
  return found.map(({ count, sums, busy }) => ({ cores: count, perSecond: spreadOf(sums), busy: spreadOf(busy) }));
}
