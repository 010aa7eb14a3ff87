import { ask, cancelsPerSecond, type DatabaseKind, insertKeys, openStage, type Stage, signIn } from './environment.ts';
import { busyDuring } from './load-guard.ts';
import { type Cpu, computeCpuSpread, hasProc, loadWithCpu } from './proc.ts';
import { startCore, startServer } from './processes.ts';
import { cancelling, placing } from './requests.ts';
import { computeSpreads, inTurn, repeat, type Spread } from './spread.ts';
import type { Say, Scale } from './workloads.ts';
import { load } from './wrk.ts';

export const operations = ['place', 'refuse', 'cancel'] as const;

/** How many requests per second a core handles if its tables contain this many keys and calls. */
export type Grown = { database: DatabaseKind; size: number } & Record<(typeof operations)[number], Spread>;

/** How long listing the newest 500 keys takes, in ms, if there are 500 or a million. */
export type Lists = { database: DatabaseKind; of500: Spread; ofMillion: Spread };

/** In seconds. Short loads are enough for refusing and cancelling, because their speed varies less than that of placing. */
const shortLoad = 1;

/** Opens a database of each size. */
export function openFilled(kind: DatabaseKind, { sizes, rounds }: Scale, say: Say): Promise<Stage[]> {
  return repeat(sizes.length, async (n) => {
    const start = performance.now();
    const stage = await openStage(kind, sizes[n]);
    await stage.queue((rounds + 1) * shortLoad);
    say(`${kind}: ${sizes[n]} keys and calls created in ${Math.round((performance.now() - start) / 1_000)} s`);
    return stage;
  });
}

/** Measures the sizes in turn, and closes their databases. */
export async function grow(
  stages: readonly Stage[],
  { sizes, seconds, rounds }: Scale,
  say: Say,
): Promise<{ grown: Grown[]; lists: Lists[] }> {
  const all = await inTurn(stages, rounds + 1, async ({ kind, core, path, keys, key, unknown }, round) => {
    const { perSecond: place } = await load(placing(core.url, path, keys), seconds);
    const { perSecond: refuse } = await load(placing(core.url, path, unknown, 0), shortLoad);
    const { perSecond: cancel } = await load(cancelling(core.url, path, key), shortLoad, round * shortLoad * cancelsPerSecond);
    say(`round ${round}: ${kind}: ${[place, refuse, cancel].map((rate, n) => `${operations[n]} ${Math.round(rate)}/s`).join(', ')}`);
    return { place, refuse, cancel };
  });
  const listed = stages[1] && (await listKeys(stages[1], rounds));
  for (const stage of stages) await stage.close();
  const grown = all.map(({ item, results }, n) => ({
    ...{ database: item.kind, size: sizes[n] ?? 0 },
    // The first round only warms up code and caches.
    ...computeSpreads(results.slice(1), operations),
  }));
  return { grown, lists: listed ? [listed] : [] };
}

/** Lists the keys of the partner who has them all, and of another partner, who gets 500, on the same core. */
async function listKeys({ kind, core, storage, tenants }: Stage, rounds: number): Promise<Lists> {
  await insertKeys(storage.database, 500, tenants.users.other, tenants.otherAccount);
  const cookies = { of500: await signIn(core, 'otto'), ofMillion: await signIn(core, 'pat') };
  const measureTime = async (cookie: string) => {
    const from = performance.now();
    await (await ask(core, 'GET', '/console/api-keys', cookie)).text();
    return performance.now() - from;
  };
  const times = await repeat(10 * rounds, async () => ({
    of500: await measureTime(cookies.of500),
    ofMillion: await measureTime(cookies.ofMillion),
  }));
  return { database: kind, ...computeSpreads(times.slice(rounds), ['of500', 'ofMillion']) };
}

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

/** The CPU time per request of a server that does part of the core's work. Each scope includes the one before it. */
export type Scope = { name: string; cpu: Cpu<Spread> };

/** The values of SCOPE that `servers/scope.ts` accepts, and the work that each one adds. */
const scopes = {
  http: 'HTTP: node:http responds immediately',
  koa: 'Koa',
  body: 'body: read and parsed',
  key: 'key: its format and digest',
  schema: 'schema of the body',
  core: 'response: routes, request ID, metrics, and writing it',
};

/** Measures the scopes in turn, and finally the whole core. Returns nothing if the system doesn't report CPU times. */
export async function measureBudget(stage: Stage, { rounds, seconds, warmUp }: Scale): Promise<Scope[]> {
  if (!hasProc) return [];
  const partial = await Promise.all(
    Object.entries(scopes).map(async ([scope, name]) => {
      return { name, server: await startServer('servers/scope.ts', { SCOPE: scope, DATABASE_URL: stage.database }) };
    }),
  );
  const scoped = [...partial, { name: 'database: batches, statement and client', server: stage.core }];
  const target = (url: string) => placing(url, stage.path, stage.keys);
  for (const { server } of scoped) await load(target(server.url), warmUp);
  const all = await inTurn(scoped, rounds, ({ server: { url, pid } }) =>
    loadWithCpu(target(url), seconds, { pid, postgres: stage.postgres }),
  );
  for (const { server } of partial) await server.stop();
  return all.flatMap(({ item: { name }, results }) => {
    const cpu = computeCpuSpread(results);
    return cpu ? [{ name, cpu }] : [];
  });
}
