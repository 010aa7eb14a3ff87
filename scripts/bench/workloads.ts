import { setTimeout as pause } from 'node:timers/promises';
import { cancelsPerSecond, type Stage } from './environment.ts';
import { count, databaseLabel, missed, range, tableOf, withRange } from './pages.ts';
import { type Cpu, hasProc } from './proc.ts';
import { bareKoa, startServer } from './processes.ts';
import { computeSpread, computeSpreads, inTurn, type Spread, type Spreads } from './spread.ts';
import { getting, type Load, load, numbered, placing, type Target, usualSeconds } from './wrk.ts';

/** Null if the system doesn't report it. */
type RowCpu = Spreads<Exclude<keyof Cpu, 'total'>> | null;
type RowFigures = { ratio: Spread; perSecond: Spread; p50: Spread; p99: Spread };
/** One row of the table: its share of bare Koa's requests in the same round, and its measurements. Times are in milliseconds. */
export type Row = { name: string; database: string; goal: number | null; cpu: RowCpu } & RowFigures;

/** A row to measure. */
export type Measured = { name: string; goal?: number | undefined; target: Target };

/** In ms. Waits this long, so that a database's cleanup after a load doesn't slow down bare Koa. */
const settling = 1_000;

/** Measures the rows of one database, including that of a server which does the same work in a straightforward way. */
export async function measureRows(stage: Stage, rounds: number, more: readonly Measured[] = []): Promise<Row[]> {
  const { kind, keys, key, unknown, revoked } = stage;
  const goals = kind === 'sqlite' ? { place: 0.5, malformed: 0.8, refuse: 0.75, cancel: 0.55 } : { place: 0.45, refuse: 0.62, cancel: 0.4 };
  const straightforward = await startServer('servers/straightforward.ts', { DATABASE_URL: stage.database });
  const measured = await measure(stage, rounds, [
    { name: 'place', goal: goals.place, target: placing(stage, keys) },
    { name: 'place, a thousand keys in turn', target: placing(stage, stage.thousandKeys) },
    { name: 'refuse a malformed key', goal: goals.malformed, target: placing(stage, ['svc_sk_live_nonsense'], 0) },
    { name: 'refuse an unknown key', goal: goals.refuse, target: placing(stage, unknown, 0) },
    { name: 'refuse a revoked key', goal: goals.refuse, target: placing(stage, revoked, 0) },
    { name: 'cancel', goal: goals.cancel, target: numbered('cancel', stage, key) },
    { name: 'place, straightforward', target: placing({ ...stage, core: straightforward }, keys) },
    ...more,
  ]);
  await straightforward.stop();
  return measured;
}

/** Measures rows in turn, with bare Koa before and after each. Bare Koa becomes the first row. */
export async function measure(stage: Stage, rounds: number, rows: readonly Measured[]): Promise<Row[]> {
  const bare = getting(await bareKoa());
  const sides: Record<string, { target: Target; first: number }> = {};
  // All calls to cancel are created in advance, so that the database doesn't have to clean up in the meantime.
  for (const { name, target } of rows)
    sides[name] = { target, first: target.kind === 'cancel' ? await stage.queue((rounds + 1) * usualSeconds) : 0 };
  const bareLoads: Load[] = [];
  const loadBare = async () => {
    await pause(settling);
    const measured = await load(bare, { seconds: 1 });
    bareLoads.push(measured);
    return measured.perSecond;
  };
  // Warms up the code before it's measured.
  await load(bare);
  let before = await loadBare();
  const measured = await inTurn(sides, rounds, async ({ target, first }, round) => {
    const loaded = await load(target, { from: first + round * usualSeconds * cancelsPerSecond });
    const after = await loadBare();
    const ratio = (2 * loaded.perSecond) / (before + after);
    before = after;
    return { ...loaded, ratio };
  });
  const { median } = computeSpread(bareLoads.map(({ perSecond }) => perSecond));
  const bareFigures = computeSpreads(bareLoads.map((loaded) => ({ ...loaded, postgres: 0, ratio: loaded.perSecond / median })));
  const all: readonly Pick<Measured, 'name' | 'goal'>[] = [{ name: 'bare Koa' }, ...rows];
  return all.map(({ name, goal = null }) => {
    const { ratio, perSecond, p50, p99, main, rest, postgres } = measured[name] ?? bareFigures;
    return { name, database: stage.kind, goal, ratio, perSecond, p50, p99, cpu: hasProc ? { main, rest, postgres } : null };
  });
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
