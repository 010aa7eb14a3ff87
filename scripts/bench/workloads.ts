import { setTimeout as pause } from 'node:timers/promises';
import { startPgBouncer } from '../support/pgbouncer.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { databaseVersion, describeOrigin, openStage, type Stage } from './environment.ts';
import { count, counts, databaseLabel, formatDate, range, table, tableOf, withGoal, withRange } from './pages.ts';
import { hasProc } from './proc.ts';
import { startCore, startServer, versionOf } from './processes.ts';
import { computeSpread, computeSpreads, inTurn, type Spreads } from './spread.ts';
import { getting, type Load, load, placing, type Target } from './wrk.ts';

/** One row of the table: its measurements, and its share of bare Koa's requests in the same round. */
export type Row = { name: string; database: string; goal: string } & Spreads<keyof Load | 'ratio'>;

const goals: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sqlite: {
    ...{ place: '≥ 0.50', cancel: '≥ 0.55' },
    ...{ 'refuse a malformed key': '≥ 0.80', 'refuse an unknown key': '≥ 0.75', 'refuse a revoked key': '≥ 0.75' },
  },
  postgres: { place: '≥ 0.45', cancel: '≥ 0.40', 'refuse an unknown key': '≥ 0.62', 'refuse a revoked key': '≥ 0.62' },
};

/** Measures the rows of one database. One row is for a server that places calls in a straightforward way, for comparison with the core. */
export async function measureRows(stage: Stage, rounds: number, more: Readonly<Record<string, Target>> = {}): Promise<Row[]> {
  await using straightforward = await startServer('servers/straightforward.ts', { DATABASE_URL: stage.database });
  return await measure(stage, rounds, {
    place: placing(stage, stage.keys),
    'place, a thousand keys in turn': placing(stage, stage.thousandKeys),
    'refuse a malformed key': placing(stage, ['svc_sk_live_nonsense'], 0),
    'refuse an unknown key': placing(stage, stage.unknown, 0),
    'refuse a revoked key': placing(stage, stage.revoked, 0),
    cancel: await stage.cancelling(rounds),
    'place, straightforward': placing({ ...stage, core: straightforward }, stage.keys),
    ...more,
  });
}

/** Measures loads in turn, with bare Koa before and after each. Bare Koa becomes the first row. */
export async function measure({ kind }: Stage, rounds: number, targets: Readonly<Record<string, Target>>): Promise<Row[]> {
  await using server = await startServer('servers/bare.ts');
  const bare = getting(server);
  const bareLoads: Load[] = [];
  const loadBare = async () => {
    // Waits, because a database's cleanup after a load would slow down bare Koa.
    await pause(1_000);
    const loaded = await load({ ...bare, seconds: 1 });
    bareLoads.push(loaded);
    return loaded.perSecond;
  };
  // Warms up the code before it's measured.
  await load(bare);
  let before = await loadBare();
  const measured = await inTurn(targets, rounds, async (target, round) => {
    const loaded = await load(target, round);
    const after = await loadBare();
    const ratio = (2 * loaded.perSecond) / (before + after);
    before = after;
    return { ...loaded, ratio };
  });
  const { median } = computeSpread(bareLoads.map(({ perSecond }) => perSecond));
  const ofBare = computeSpreads(bareLoads.map((loaded) => ({ ...loaded, postgres: 0, ratio: loaded.perSecond / median })));
  return Object.entries({ 'bare Koa': ofBare, ...measured }).map(([name, spreads]) => {
    return { name, database: kind, goal: goals[kind]?.[name] ?? '', ...spreads };
  });
}

export function rowTable(rows: readonly Row[]): string {
  return tableOf(rows, {
    '': ({ name }) => name,
    database: ({ database }) => databaseLabel(database),
    'share of bare Koa': ({ ratio }) => `**${ratio.median.toFixed(2)}**`,
    goal: ({ goal, ratio }) => withGoal(goal, ratio.median),
    range: ({ ratio }) => range(ratio),
    'per second': ({ perSecond }) => count(perSecond.median),
    'p99 (range)': ({ p99 }) => `${p99.median.toFixed(1)} ms (${range(p99, 1)})`,
  });
}

export function cpuTable(rows: readonly Row[]): string {
  // Only Linux reports CPU time.
  const measured = rows.filter(({ main }) => main.median > 0);
  return tableOf(measured, {
    'CPU time per request, µs': ({ name }) => name,
    database: ({ database }) => databaseLabel(database),
    'main thread': ({ main }) => withRange(main, 1),
    'rest of the process': ({ rest }) => withRange(rest, 1),
    'PostgreSQL server': ({ postgres }) => (postgres.median > 0 ? withRange(postgres, 1) : ''),
  });
}

/** The CPU time per request of a server that does part of the core's work. Each scope includes the one before it. */
export type Scope = { name: string } & Spreads<'main' | 'rest'>;

/** The work that each scope adds, and the value of SCOPE that `servers/scope.ts` accepts. */
const scopes = {
  'HTTP: node:http responds immediately': 'http',
  Koa: 'koa',
  'body: read and parsed': 'body',
  'key: its format and digest': 'key',
  'schema: the body is validated': 'schema',
  'response: routing, request ID, metrics, and writing the response': 'core',
};

/** Measures the scopes in turn, and finally the whole core. Returns nothing if the system doesn't report CPU times. */
export async function measureBudget(stage: Stage, rounds: number): Promise<Scope[]> {
  if (!hasProc) return [];
  const partial: Record<string, ServerProcess> = {};
  for (const [name, SCOPE] of Object.entries(scopes))
    partial[name] = await startServer('servers/scope.ts', { SCOPE, DATABASE_URL: stage.database });
  const servers = { ...partial, 'database: batches, statement and client': stage.core };
  const measured = await inTurn(servers, rounds, (core) => load(placing({ ...stage, core }, stage.keys)));
  for (const server of Object.values(partial)) await server.stop();
  return Object.entries(measured).map(([name, { main, rest }]) => ({ name, main, rest }));
}

/** Builds a table whose lines show how much more each scope costs than the one before. */
export function budgetTable(budget: readonly Scope[], rows: readonly Row[]): string {
  const onPostgres = rows.filter(({ name, database }) => budget.length > 0 && name === 'place' && database === 'postgres');
  const all = [...budget, ...onPostgres.map((row) => ({ ...row, name: 'on PostgreSQL instead' }))];
  const lines = all.map(({ name, ...scope }, n) => {
    const added = (part: 'main' | 'rest') => (scope[part].median - (all[n - 1]?.[part].median ?? 0)).toFixed(1);
    return [name, added('main'), added('rest'), scope.main.median.toFixed(1), range(scope.main, 1)];
  });
  return table(['CPU time per placed call, µs', 'main thread', 'rest of the process', 'main thread, in total', 'range'], lines);
}

const ways = ['no pooler', 'transaction mode', 'session mode'] as const;

/** What PgBouncer between a core and PostgreSQL costs. Each row is named after its operation and mode, such as `place, session mode`. */
type Poolers = Awaited<ReturnType<typeof poolers>>;

/**
 * Measures cores on one PostgreSQL, with and without PgBouncer. Each core has ten connections to PostgreSQL: its own, or those of its
 * PgBouncer.
 */
export async function poolers(rounds: number) {
  const pooler = await versionOf('pgbouncer');
  const origin = await describeOrigin();
  await using stage = await openStage('postgres');
  const targets: Record<string, Target> = {};
  for (const way of ways) {
    const mode = way === 'session mode' ? 'session' : 'transaction';
    const through = way === 'no pooler' ? null : await startPgBouncer(stage.database, mode, 10);
    const core = through ? await startCore(through.url) : stage.core;
    targets[`place, ${way}`] = placing({ ...stage, core }, stage.keys);
    targets[`cancel, ${way}`] = await stage.cancelling(rounds, core);
  }
  return { ...origin, pooler, database: await databaseVersion(stage), rows: await measure(stage, rounds, targets) };
}

export function poolersSection({ at, machine, database, pooler, rows }: Poolers): string {
  const cells = (name: string) =>
    rows.filter((row) => row.name === name).flatMap(({ perSecond, p99 }) => [counts(perSecond), `${p99.median.toFixed(1)} ms`]);
  const lines = ways.map((way) => [way, ...cells(`place, ${way}`), ...cells(`cancel, ${way}`)]);
  return `${table(['', 'place, per second', 'p99', 'cancel, per second', 'p99'], lines)}
${formatDate(at)}, ${machine['processor']} for all programs together, ${machine['node']}, ${database}, ${pooler}: medians and ranges, with 64 wrk connections.\n`;
}
