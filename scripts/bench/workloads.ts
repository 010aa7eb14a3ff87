import { setTimeout } from 'node:timers/promises';
import { type CostedLoad, type Cpu, cpuSpreadOf, loadWithCpu } from './cpu.ts';
import type { Stage } from './environment.ts';
import type { Server } from './processes.ts';
import { cancelling, getting, placing } from './requests.ts';
import type { Scale } from './scale.ts';
import { type Spread, spreadOf } from './spread.ts';
import { load, type Target } from './wrk.ts';

/** One row of the table: its share of bare Koa's requests in the same round, and what was measured of it. Times are in milliseconds. */
export type Row = {
  name: string;
  database: string;
  goal: number | null;
  ratio: Spread;
  perSecond: Spread;
  p50: Spread;
  p99: Spread;
  /** Null where the system does not tell. */
  cpu: Cpu<Spread> | null;
};

export type Measured = Pick<Row, 'name' | 'goal'> & {
  server: Server;
  target: Target;
  prepare?: (seconds: number) => Promise<number>;
};

/** More cancelled calls in a second than a core manages. */
export const cancelsPerSecond = 80_000;
/** In ms: what a database tidies up after a load must not slow bare Koa down. */
const settling = 1_000;

export const thousandKeys = 'place, a thousand keys in turn';

export function rowsOf(stage: Stage, straightforward: Server): Measured[] {
  const { kind, core, path, keys, unknown, revoked } = stage;
  const goals = kind === 'sqlite' ? { place: 0.5, refuse: 0.75, cancel: 0.55 } : { place: 0.45, refuse: 0.62, cancel: 0.4 };
  const row = (name: string, goal: number | null, target: Target): Measured => ({ name, goal, target, server: core });
  const queue = (seconds: number) => stage.queue(seconds * cancelsPerSecond);
  return [
    row('place', goals.place, placing(core.url, path, keys)),
    row(thousandKeys, null, placing(core.url, path, stage.thousandKeys)),
    row('refuse a malformed key', kind === 'sqlite' ? 0.8 : null, placing(core.url, path, ['svc_sk_live_nonsense'], 0)),
    row('refuse an unknown key', goals.refuse, placing(core.url, path, unknown, 0)),
    row('refuse a revoked key', goals.refuse, placing(core.url, path, revoked, 0)),
    { ...row('cancel', goals.cancel, cancelling(core.url, path, keys[0] ?? '')), prepare: queue },
    { ...row('place, straightforward', null, placing(straightforward.url, path, keys)), server: straightforward },
  ];
}

/**
 * Measures rows in turn, bare Koa before and after each, over and over, so that what the machine does meanwhile affects all of them alike.
 * Bare Koa becomes the first row.
 */
export async function measure(
  stage: Stage,
  rows: readonly Measured[],
  bare: Server,
  scale: Scale,
  say: (line: string) => void,
): Promise<Row[]> {
  const { rounds, seconds, warmUp } = scale;
  const { kind: database, postgres } = stage;
  const found = new Map(rows.map((row) => [row, { ratios: [] as number[], loads: [] as CostedLoad[] }]));
  // All calls to cancel are made ahead, so that the database has nothing to tidy up meanwhile.
  const first = new Map<Measured, number>();
  for (const row of rows) first.set(row, (await row.prepare?.(warmUp + rounds * seconds)) ?? 0);
  // Code that is not warm yet is not what is to be measured.
  await load(getting(bare.url), warmUp);
  for (const row of rows) await load(row.target, warmUp, first.get(row));
  const bareLoads: CostedLoad[] = [];
  const loadBare = async () => {
    await setTimeout(settling);
    const one = await loadWithCpu(getting(bare.url), 1, { pid: bare.pid, postgres: undefined });
    bareLoads.push(one);
    return one.perSecond;
  };
  for (let round = 0; round < rounds; round++) {
    let before = await loadBare();
    for (const [row, { ratios, loads }] of found) {
      const from = (first.get(row) ?? 0) + (warmUp + round * seconds) * cancelsPerSecond;
      const measured = await loadWithCpu(row.target, seconds, { pid: row.server.pid, postgres }, from);
      const after = await loadBare();
      const ratio = (2 * measured.perSecond) / (before + after);
      loads.push(measured);
      ratios.push(ratio);
      before = after;
      say(`round ${round + 1}: ${row.name}, ${database}: ${Math.round(measured.perSecond)}/s, ${ratio.toFixed(2)} of bare Koa`);
    }
  }
  const median = spreadOf(bareLoads.map(({ perSecond }) => perSecond)).median;
  const bareRatios = bareLoads.map(({ perSecond }) => perSecond / median);
  return [
    rowOf({ name: 'bare Koa', goal: null }, database, bareRatios, bareLoads),
    ...[...found].map(([row, { ratios, loads }]) => rowOf(row, database, ratios, loads)),
  ];
}

function rowOf({ name, goal }: Pick<Row, 'name' | 'goal'>, database: string, ratios: readonly number[], loads: readonly CostedLoad[]): Row {
  return {
    ...{ name, database, goal, ratio: spreadOf(ratios) },
    perSecond: spreadOf(loads.map(({ perSecond }) => perSecond)),
    p50: spreadOf(loads.map(({ p50 }) => p50)),
    p99: spreadOf(loads.map(({ p99 }) => p99)),
    cpu: cpuSpreadOf(loads),
  };
}
