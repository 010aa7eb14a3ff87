import { setTimeout as pause } from 'node:timers/promises';
import type { ServerProcess } from '../support/server-process.ts';
import { cancelsPerSecond, type Stage } from './environment.ts';
import { count, databaseLabel, missed, range, tableOf, withRange } from './markdown.ts';
import { type CostedLoad, type Cpu, computeCpuSpread, loadWithCpu } from './proc.ts';
import { startServer } from './processes.ts';
import { cancelling, getting, placing, type Target } from './requests.ts';
import { computeSpread, computeSpreads, inTurn, type Spread } from './spread.ts';
import { load } from './wrk.ts';

/** How much is measured. Times are in seconds. */
export type Scale = {
  rounds: number;
  /** The duration of one load. */
  seconds: number;
  warmUp: number;
  /** How many keys, and how many calls, are in the tables: in the smallest, in those whose lists are measured, and in the largest. */
  sizes: readonly [number, number, number];
  /** How often a program is started. */
  starts: number;
};

export const scales = {
  full: { rounds: 9, seconds: 2, warmUp: 4, sizes: [1_000, 1_000_000, 10_000_000], starts: 11 },
  rows: { rounds: 3, seconds: 2, warmUp: 4, sizes: [0, 0, 0], starts: 0 },
  poolers: { rounds: 5, seconds: 2, warmUp: 2, sizes: [0, 0, 0], starts: 0 },
  rehearsal: { rounds: 2, seconds: 2, warmUp: 2, sizes: [1_000, 5_000, 20_000], starts: 2 },
} as const satisfies Record<string, Scale>;

/** One row of the table: its share of bare Koa's requests in the same round, and its measurements. Times are in milliseconds. */
export type Row = {
  name: string;
  database: string;
  goal: number | null;
  ratio: Spread;
  perSecond: Spread;
  p50: Spread;
  p99: Spread;
  /** Null if the system doesn't report it. */
  cpu: Cpu<Spread> | null;
};

export type Measured = { name: string; goal?: number | null; server: ServerProcess; target: Target; isCancel?: boolean };

/** In ms. Waits this long, so that a database's cleanup after a load doesn't slow down bare Koa. */
const settling = 1_000;

export const thousandKeys = 'place, a thousand keys in turn';

/** Measures the rows of one database, including that of a server which does the same work in a straightforward way. */
export async function measureRows(
  stage: Stage,
  bare: ServerProcess,
  scale: Scale,
  say: Say,
  more: readonly Measured[] = [],
): Promise<Row[]> {
  const { kind, core, path, keys, key, unknown, revoked } = stage;
  const goals = kind === 'sqlite' ? { place: 0.5, malformed: 0.8, refuse: 0.75, cancel: 0.55 } : { place: 0.45, refuse: 0.62, cancel: 0.4 };
  const straightforward = await startServer('servers/straightforward.ts', { DATABASE_URL: stage.database });
  const row = (name: string, target: Target, goal?: number): Measured => ({ name, goal: goal ?? null, target, server: core });
  const rows = [
    row('place', placing(core.url, path, keys), goals.place),
    row(thousandKeys, placing(core.url, path, stage.thousandKeys)),
    row('refuse a malformed key', placing(core.url, path, ['svc_sk_live_nonsense'], 0), goals.malformed),
    row('refuse an unknown key', placing(core.url, path, unknown, 0), goals.refuse),
    row('refuse a revoked key', placing(core.url, path, revoked, 0), goals.refuse),
    { ...row('cancel', cancelling(core.url, path, key), goals.cancel), isCancel: true },
    { name: 'place, straightforward', server: straightforward, target: placing(straightforward.url, path, keys) },
  ];
  const measured = await measure(stage, [...rows, ...more], bare, scale, say);
  for (const { stop } of [straightforward, ...more.map(({ server }) => server)]) await stop();
  return measured;
}

export type Say = (line: string) => void;

/** Measures rows in turn, with bare Koa before and after each. Bare Koa becomes the first row. */
export async function measure(stage: Stage, rows: readonly Measured[], bare: ServerProcess, scale: Scale, say: Say): Promise<Row[]> {
  const { rounds, seconds, warmUp } = scale;
  const { kind: database, postgres } = stage;
  const first = new Map<Measured, number>();
  // All calls to cancel are created in advance, so that the database doesn't have to clean up in the meantime.
  for (const row of rows) first.set(row, row.isCancel ? await stage.queue(warmUp + rounds * seconds) : 0);
  // Warms up the code before it's measured.
  await load(getting(bare.url), warmUp);
  for (const row of rows) await load(row.target, warmUp, first.get(row));
  const bareLoads: CostedLoad[] = [];
  const loadBare = async () => {
    await pause(settling);
    bareLoads.push(await loadWithCpu(getting(bare.url), 1, { pid: bare.pid, postgres: undefined }));
    return bareLoads.at(-1)?.perSecond ?? Number.NaN;
  };
  let before = await loadBare();
  const all = await inTurn(rows, rounds, async (row, round) => {
    const from = (first.get(row) ?? 0) + (warmUp + round * seconds) * cancelsPerSecond;
    const measured = await loadWithCpu(row.target, seconds, { pid: row.server.pid, postgres }, from);
    const after = await loadBare();
    const ratio = (2 * measured.perSecond) / (before + after);
    before = after;
    say(`round ${round + 1}: ${row.name}, ${database}: ${Math.round(measured.perSecond)}/s, ${ratio.toFixed(2)} of bare Koa`);
    return { ...measured, ratio };
  });
  const buildRow = (name: string, goal: number | null, loads: readonly (CostedLoad & { ratio: number })[]): Row => ({
    ...{ name, database, goal, ...computeSpreads(loads, ['ratio', 'perSecond', 'p50', 'p99']), cpu: computeCpuSpread(loads) },
  });
  const { median } = computeSpread(bareLoads.map(({ perSecond }) => perSecond));
  const bareRatios = bareLoads.map((load) => ({ ...load, ratio: load.perSecond / median }));
  return [buildRow('bare Koa', null, bareRatios), ...all.map(({ item: { name, goal = null }, results }) => buildRow(name, goal, results))];
}

export function rowTable(rows: readonly Row[]): string {
  return tableOf(rows, {
    '': ({ name }) => name,
    database: ({ database }) => databaseLabel(database),
    'share of bare Koa': ({ ratio }) => `**${ratio.median.toFixed(2)}**`,
    goal: ({ goal, ratio }) => (goal === null ? '' : `≥ ${goal.toFixed(2)}${missed(ratio.median >= goal)}`),
    range: ({ ratio }) => range(ratio),
    'per second': ({ perSecond }) => count(perSecond.median),
    'p99 (range)': ({ p99 }) => `${p99.median.toFixed(1)} ms (${range(p99, 1)})`,
  });
}

export function cpuTable(rows: readonly Row[]): string {
  const measured = rows.flatMap(({ name, database, cpu }) => (cpu ? [{ name, database, cpu }] : []));
  return tableOf(measured, {
    'CPU time per request, µs': ({ name }) => name,
    database: ({ database }) => databaseLabel(database),
    'main thread': ({ cpu }) => withRange(cpu.main, 1),
    'rest of the process': ({ cpu }) => withRange(cpu.rest, 1),
    'PostgreSQL server': ({ cpu }) => (cpu.postgres.median > 0 ? withRange(cpu.postgres, 1) : ''),
  });
}
