import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { listApiKeys } from '../../core/domain/api-keys.ts';
import { scopeFor } from '../../core/domain/directory/scope.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { insertKeys, openStage, type Stage } from './environment.ts';
import { count, counts, databaseLabel, tableOf, withGoal, withRange } from './pages.ts';
import { busyTime, hasProc, readMegabytes } from './proc.ts';
import { type DatabaseKind, freshFolder, type Output, packCommand, run, startCore, startServer } from './processes.ts';
import { computeRatios, computeSpread, inTurn, repeat, type Spread, say, timed } from './spread.ts';
import type { Row } from './workloads.ts';
import { getting, load, placing, type Target } from './wrk.ts';

/** A figure that isn't a share of bare Koa. The goal applies to its median. */
type Figure = { name: string; database: string; goal: string; value: string; spread: Spread };

/** How many requests per second several cores on one PostgreSQL handle together, and how busy the processors are, from 0 to 1. */
type Cores = { cores: number; perSecond: Spread; busy: Spread };

const operations = ['place', 'refuse', 'cancel'] as const;
/** How many requests per second a core handles if its tables contain this many keys and calls. */
type Grown = { database: DatabaseKind; size: number } & Record<(typeof operations)[number], Spread>;

export type Figures = { figures: Figure[]; cores: Cores[]; grown: Grown[] };

const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

/** @param goal such as `≤ 0.5 ms` @param value the text for the table */
function figure(name: string, database: string, goal: string, spread: Spread, value = withRange(spread)): Figure {
  return { name, database, goal, value, spread };
}

/** Measures the figures of one database. Must run right after the loads of its rows, because one figure is the core's memory after them. */
export async function measureFigures(stage: Stage, [bare, ten, thousand]: readonly Row[], rounds: number): Promise<Figure[]> {
  const { kind, core } = stage;
  const figures: Figure[] = [];
  if (hasProc) {
    const megabytes = readMegabytes(core.pid);
    figures.push(figure('memory after these workloads', kind, '< 200 MB', computeSpread([megabytes]), `${Math.round(megabytes)} MB`));
  }
  if (bare && ten && thousand) {
    const { median, min, max } = ten.p99;
    const p99 = `${ms(median)} (${ms(min)} to ${ms(max)}; bare Koa: ${ms(bare.p99.median)})`;
    const ratios = computeRatios(thousand.perSecond, ten.perSecond);
    figures.push(figure('place, p99 with 64 connections', kind, '≤ 8 ms', ten.p99, p99));
    figures.push(figure('place with a thousand keys in turn, compared with ten', kind, '≥ 0.90', ratios));
  }
  const alone = await measureLoneClient(stage, rounds);
  // The database already exists, so this time doesn't include creating its tables.
  const start = await measureTime('startup, until the core is listening', kind, '< 400 ms', rounds, () => startCore(stage.database));
  return [...figures, alone, start, ...(await measureSignInFlood(stage, rounds))];
}

/** Measures how much longer a single client waits for the core than for bare Koa plus one fsync on this disk. */
async function measureLoneClient(stage: Stage, rounds: number): Promise<Figure> {
  const fsync = fsyncMedian();
  await using server = await startServer('servers/bare.ts');
  const targets = { bare: getting(server), core: placing(stage, stage.keys) };
  const { bare, core } = await inTurn(targets, rounds, (target) => load({ ...target, connections: 1 }));
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
async function measureSignInFlood(stage: Stage, rounds: number): Promise<Figure[]> {
  await using core = await startCore(stage.database, { TRUSTED_PROXIES: '127.0.0.1' });
  const signIns: Target = { server: core, kind: 'sign_in', parameters: [], successes: null, connections: 16 };
  const { quiet, flooded } = await inTurn({ quiet: [], flooded: [signIns] }, rounds, async (floods, round) => {
    const placed = load(placing({ ...stage, core }, stage.keys));
    await Promise.all(floods.map((flood) => load(flood, round)));
    return placed;
  });
  return [
    figure('place during a sign-in flood, compared with no flood', stage.kind, '≥ 0.65', computeRatios(flooded.perSecond, quiet.perSecond)),
    figure('p99 during a sign-in flood, compared with no flood', stage.kind, '≤ 2', computeRatios(flooded.p99, quiet.p99)),
  ];
}

/** Measures how long the published command takes to show its help. */
export async function measureHelp(rounds: number): Promise<Figure> {
  const command = await packCommand();
  return measureTime('callkey --help', '', '< 120 ms', rounds, () => run(process.execPath, [command, '--help']));
}

/** @param start starts a core and waits until it's listening, or runs a program */
async function measureTime(name: string, database: string, goal: string, rounds: number, start: () => Promise<ServerProcess | Output>) {
  const { measured } = await inTurn({ measured: start }, rounds, async () => {
    const { result, ms } = await timed(start);
    if ('stop' in result) await result.stop();
    return { ms };
  });
  return figure(name, database, goal, measured.ms, ms(measured.ms.median));
}

/**
 * Measures one, two and four cores on one PostgreSQL, with 64 connections to each. Compares two cores with one: two can handle more only if
 * one core doesn't already use all processors.
 */
export async function measureSeveralCores(stage: Stage, rounds: number): Promise<Omit<Figures, 'grown'>> {
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
  const cores = Object.entries(measured).map(([number, spreads]) => ({ cores: Number(number), ...spreads }));
  const [one, two] = cores;
  if (!one || !two) return { cores, figures: [] };
  const ratios = computeRatios(two.perSecond, one.perSecond);
  return { cores, figures: [figure('two cores on one PostgreSQL, compared with one core', 'postgres', '≥ 1.7', ratios)] };
}

/** How many keys each database has, and also how many calls: the smallest, the one whose lists are measured, and the largest. */
export type Sizes = Record<'smallest' | 'listed' | 'largest', number>;

/** Measures databases of these sizes in turn. Compares the largest with the smallest. */
export async function grow(kind: DatabaseKind, sizes: Sizes, rounds: number): Promise<Omit<Figures, 'cores'>> {
  const open = async (size: number) => {
    const stage = await openStage(kind, size);
    // Short loads are enough for refusing and cancelling, because their speed varies less than that of placing.
    const refuse = { ...placing(stage, stage.unknown, 0), seconds: 1 };
    const targets = { place: placing(stage, stage.keys), refuse, cancel: await stage.cancelling(rounds, stage.core, 1) };
    say(`${kind}: ${size} keys and calls created`);
    return { stage, targets };
  };
  const sides = { smallest: await open(sizes.smallest), listed: await open(sizes.listed), largest: await open(sizes.largest) };
  const measured = await inTurn(sides, rounds, async ({ targets: { place, refuse, cancel } }, round) => ({
    place: (await load(place, round)).perSecond,
    refuse: (await load(refuse, round)).perSecond,
    cancel: (await load(cancel, round)).perSecond,
  }));
  const lists = await measureLists(sides.listed.stage, rounds);
  for (const { stage } of Object.values(sides)) await stage.close();
  const compared = `with ${count(sizes.largest)} keys and calls, compared with ${count(sizes.smallest)}`;
  const ratio = (name: (typeof operations)[number]) =>
    figure(`${name} ${compared}`, kind, '≥ 0.90', computeRatios(measured.largest[name], measured.smallest[name]));
  const names = ['smallest', 'listed', 'largest'] as const;
  const grown = names.map((name) => ({ database: kind, size: sizes[name], ...measured[name] }));
  return { grown, figures: [lists, ...operations.map(ratio)] };
}

/** Compares listing the keys of the partner that has all of them with listing those of another partner, for which this creates 500. */
async function measureLists({ kind, ports, storage, tenants }: Stage, rounds: number): Promise<Figure> {
  const { users, otherAccount } = tenants;
  await insertKeys(storage.database, 500, users.other, otherAccount);
  const { few, many } = await inTurn({ few: users.otherPartner, many: users.partner }, rounds, async (user) => {
    const times = await repeat(10, () => timed(() => listApiKeys(ports, scopeFor({ ...user, tenancy: null }).apiKeys)));
    return { ms: computeSpread(times.map(({ ms }) => ms)).median };
  });
  const ratios = computeRatios(many.ms, few.ms);
  const value = `${ratios.median.toFixed(2)} (${ms(many.ms.median)} and ${ms(few.ms.median)})`;
  return figure('list of the newest 500 of a million keys, compared with 500 of 500', kind, '≤ 2', ratios, value);
}

/** Builds the sections of the pages that quote these results, by section name. */
export function figureSections({ figures, cores, grown }: Figures) {
  return {
    figures: tableOf(figures, {
      '': ({ name }) => name,
      database: ({ database }) => databaseLabel(database),
      goal: ({ goal, spread }) => withGoal(goal, spread.median),
      measured: ({ value }) => value,
    }),
    cores: tableOf(cores, {
      cores: ({ cores }) => String(cores),
      'placed calls per second': ({ perSecond }) => count(perSecond.median),
      range: ({ perSecond: { min, max } }) => `${count(min)} to ${count(max)}`,
      'processors busy': ({ busy }) => `${Math.round(busy.median * 100)}%`,
    }),
    growth: tableOf(grown, {
      'keys, and as many calls': ({ size }) => count(size),
      database: ({ database }) => databaseLabel(database),
      place: ({ place }) => counts(place),
      'refuse an unknown key': ({ refuse }) => counts(refuse),
      cancel: ({ cancel }) => counts(cancel),
    }),
  };
}
