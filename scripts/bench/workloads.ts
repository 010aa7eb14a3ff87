import { setTimeout } from 'node:timers/promises';
import type { Stage } from './environment.ts';
import type { Server } from './processes.ts';
import { cancelling, getting, placing } from './requests.ts';
import { type Load, load, type Target } from './wrk.ts';

/** A median, and the range that it comes from. */
export type Spread = { median: number; min: number; max: number };

/** One row of the table: its share of bare Koa's requests in the same round, and what was measured of it. */
export type Row = { name: string; database: string; goal: number | null; ratio: Spread; perSecond: Spread; p50: Spread; p99: Spread };

export type Measured = {
  name: string;
  database: string;
  goal: number | null;
  target: Target;
  prepare?: (seconds: number) => Promise<number>;
};

/** More cancelled calls in a second than a core manages. */
const cancelsPerSecond = 60_000;
/** In seconds. */
const warmUp = 5;
/** In ms: what a database tidies up after a load must not slow bare Koa down. */
const settling = 1_000;

export function rowsOf(stage: Stage, straightforward: Server): Measured[] {
  const { kind, core, path, keys, unknown, revoked } = stage;
  const goals = kind === 'sqlite' ? { place: 0.5, refuse: 0.75, cancel: 0.55 } : { place: 0.45, refuse: 0.62, cancel: 0.4 };
  const row = (name: string, goal: number | null, target: Target): Measured => ({ name, database: kind, goal, target });
  const queue = (seconds: number) => stage.queue(seconds * cancelsPerSecond);
  return [
    row('place', goals.place, placing(core.url, path, keys)),
    row('refuse a malformed key', kind === 'sqlite' ? 0.8 : null, placing(core.url, path, ['svc_sk_live_nonsense'], 0)),
    row('refuse an unknown key', goals.refuse, placing(core.url, path, unknown, 0)),
    row('refuse a revoked key', goals.refuse, placing(core.url, path, revoked, 0)),
    { ...row('cancel', goals.cancel, cancelling(core.url, path, keys[0] ?? '')), prepare: queue },
    row('place, straightforward', null, placing(straightforward.url, path, keys)),
  ];
}

/** Measures rows in turn, bare Koa before and after each, over and over: what the machine does meanwhile hits all of them alike. Bare Koa is the first row. */
export async function measure(
  rows: readonly Measured[],
  bare: Server,
  rounds: number,
  seconds: number,
  say: (line: string) => void,
): Promise<Row[]> {
  const found = new Map(rows.map((row) => [row, { ratios: [] as number[], loads: [] as Load[] }]));
  // All calls to cancel are made ahead, so that the database has nothing to tidy up meanwhile.
  const first = new Map<Measured, number>();
  for (const row of rows) first.set(row, (await row.prepare?.(warmUp + rounds * seconds)) ?? 0);
  // Measures warm code only.
  await load(getting(bare.url), warmUp);
  for (const row of rows) await load(row.target, warmUp, first.get(row));
  const bareLoads: Load[] = [];
  const loadBare = async () => {
    await setTimeout(settling);
    const one = await load(getting(bare.url), 1);
    bareLoads.push(one);
    return one;
  };
  for (let round = 1; round <= rounds; round++) {
    for (const [row, { ratios, loads }] of found) {
      const from = (first.get(row) ?? 0) + (warmUp + (round - 1) * seconds) * cancelsPerSecond;
      const before = await loadBare();
      const measured = await load(row.target, seconds, from);
      const after = await loadBare();
      loads.push(measured);
      ratios.push((2 * measured.perSecond) / (before.perSecond + after.perSecond));
      say(
        `round ${round}: ${row.name}, ${row.database}: ${Math.round(measured.perSecond)}/s, ${(ratios.at(-1) ?? 0).toFixed(2)} of bare Koa`,
      );
    }
  }
  const { database = '' } = rows[0] ?? {};
  const median = spreadOf(bareLoads.map(({ perSecond }) => perSecond)).median;
  return [
    rowOf(
      { name: 'bare Koa', database, goal: null },
      bareLoads.map(({ perSecond }) => perSecond / median),
      bareLoads,
    ),
    ...[...found].map(([row, { ratios, loads }]) => rowOf(row, ratios, loads)),
  ];
}

function rowOf({ name, database, goal }: Pick<Row, 'name' | 'database' | 'goal'>, ratios: readonly number[], loads: readonly Load[]): Row {
  return {
    ...{ name, database, goal, ratio: spreadOf(ratios) },
    perSecond: spreadOf(loads.map(({ perSecond }) => perSecond)),
    p50: spreadOf(loads.map(({ p50 }) => p50)),
    p99: spreadOf(loads.map(({ p99 }) => p99)),
  };
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return { median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, min: at(0), max: at(sorted.length - 1) };
}
