// What the bench measures: rows of requests, figures with goals, tables that grow, times, memory over hours, and long files.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fdatasyncSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { connect } from 'node:net';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { listApiKeys } from '../../core/domain/api-keys.ts';
import { operator } from '../../core/domain/audit/audit.ts';
import { scopeFor } from '../../core/domain/directory/scope.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { type ServerProcess, track } from '../support/server-process.ts';
import { type Endpoint, getting, type Load, load, placing, type Target } from './load.ts';
import {
  busyTime,
  type DatabaseKind,
  databaseKinds,
  freshFolder,
  hasProc,
  type OtherLoad,
  type Output,
  packCommand,
  postgresSettings,
  readMegabytes,
  run,
  startCore,
  startServer,
  versionOf,
  watchOtherLoad,
} from './processes.ts';
import {
  computeRatios,
  computeSpread,
  computeSpreads,
  count,
  databaseLabel,
  inTurn,
  repeat,
  type Spread,
  type Spreads,
  say,
  slopeWithRange,
  table,
  tableOf,
  timed,
  withRange,
} from './spread.ts';
import { databaseVersion, describeOrigin, insertKeys, openStage, type Stage } from './stage.ts';

/** The results of a full run, and the highest load that other programs caused for half a minute. */
export type Results = Awaited<ReturnType<typeof runAll>> & { otherLoad: OtherLoad };

/** Runs all measurements. If one of them fails, the whole run fails, without results. */
export async function runAll(rounds: number, sizes: Sizes) {
  const { machine, ...origin } = await describeOrigin();
  // The competitors have a lock file of their own.
  const competitors = fileURLToPath(new URL('competitors', import.meta.url));
  await run('npm', ['ci', '--prefix', competitors, '--ignore-scripts', '--no-audit', '--no-fund']);
  const { figures, cores, grown }: Figures = { figures: [await measureHelp(rounds)], cores: [], grown: [] };
  const [rows, budget]: [Row[], Scope[]] = [[], []];
  // Measures one database after the other, so that the cleanup of the first one doesn't slow down the rounds of the second.
  for (const kind of databaseKinds) {
    await using stage = await openStage(kind);
    machine[kind] = await databaseVersion(stage);
    const peers = await startPeers(stage);
    const measured = await measureRows(stage, rounds, peers);
    for (const { server } of Object.values(peers)) await server.stop();
    rows.push(...measured);
    figures.push(...(await measureFigures(stage, measured, rounds)));
    if (kind === 'sqlite') budget.push(...(await measureBudget(stage, rounds)));
    else {
      const several = await measureSeveralCores(stage, rounds);
      cores.push(...several.cores);
      figures.push(...several.figures);
    }
  }
  for (const kind of databaseKinds) {
    const growth = await grow(kind, sizes, rounds);
    grown.push(...growth.grown);
    figures.push(...growth.figures);
  }
  return { ...origin, machine: { ...machine, settings: postgresSettings.join(', ') }, rounds, rows, figures, budget, cores, grown };
}

/** Starts what one would use instead: a library for keys, or a job queue behind Koa that adds a durable job for each request. */
async function startPeers(stage: Stage): Promise<Record<string, Target>> {
  if (stage.kind === 'sqlite') {
    const server = await startServer('competitors/better-auth.ts', { DATABASE_FILE: join(freshFolder(), 'peer.db') });
    return { 'better-auth, verify a key and record its use': getting(server, String(server.startLine['key'])) };
  }
  const queues: Record<string, Target> = {};
  for (const QUEUE of ['pg-boss', 'graphile-worker']) {
    const core = await startServer('competitors/job-queue.ts', { QUEUE, DATABASE_URL: stage.database });
    queues[`${QUEUE}, check a key and add a job`] = placing({ ...stage, core }, stage.keys);
  }
  return queues;
}

/** One row of the table: its measurements, and its share of bare Koa's requests in the same round. */
export type Row = { name: string; database: string } & Spreads<keyof Load | 'ratio'>;

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
async function measure({ kind }: Stage, rounds: number, targets: Readonly<Record<string, Target>>): Promise<Row[]> {
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
  return Object.entries({ 'bare Koa': ofBare, ...measured }).map(([name, spreads]) => ({ name, database: kind, ...spreads }));
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
async function measureBudget(stage: Stage, rounds: number): Promise<Scope[]> {
  if (!hasProc) return [];
  const partial: Record<string, ServerProcess> = {};
  for (const [name, SCOPE] of Object.entries(scopes))
    partial[name] = await startServer('servers/scope.ts', { SCOPE, DATABASE_URL: stage.database });
  const servers = { ...partial, 'database: batches, statement and client': stage.core };
  const measured = await inTurn(servers, rounds, (core) => load(placing({ ...stage, core }, stage.keys)));
  for (const server of Object.values(partial)) await server.stop();
  return Object.entries(measured).map(([name, { main, rest }]) => ({ name, main, rest }));
}

export const ways = ['no pooler', 'transaction mode', 'session mode'] as const;

/** What PgBouncer between a core and PostgreSQL costs. Each row is named after its operation and mode, such as `place, session mode`. */
export type Poolers = Awaited<ReturnType<typeof poolers>>;

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
    const through = way === 'no pooler' ? null : await startPgBouncer(freshFolder(), stage.database, mode, 10);
    const core = through ? await startCore(through.url) : stage.core;
    targets[`place, ${way}`] = placing({ ...stage, core }, stage.keys);
    targets[`cancel, ${way}`] = await stage.cancelling(rounds, core);
  }
  return { ...origin, pooler, database: await databaseVersion(stage), rows: await measure(stage, rounds, targets) };
}

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
async function measureFigures(stage: Stage, [bare, ten, thousand]: readonly Row[], rounds: number): Promise<Figure[]> {
  const { kind, core } = stage;
  const figures: Figure[] = [];
  if (hasProc) {
    const megabytes = readMegabytes(core.pid);
    figures.push(figure('memory after these workloads', kind, '≤ 220 MB', computeSpread([megabytes]), `${Math.round(megabytes)} MB`));
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
async function measureHelp(rounds: number): Promise<Figure> {
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
async function measureSeveralCores(stage: Stage, rounds: number): Promise<Omit<Figures, 'grown'>> {
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
type Sizes = Record<'smallest' | 'listed' | 'largest', number>;

/** Measures databases of these sizes in turn. Compares the largest with the smallest. */
async function grow(kind: DatabaseKind, sizes: Sizes, rounds: number): Promise<Omit<Figures, 'cores'>> {
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

/** Lists the newest keys of the partner that has all of them, and counts them. */
async function measureLists({ kind, ports, tenants }: Stage, rounds: number): Promise<Figure> {
  const { apiKeys } = scopeFor({ ...tenants.users.partner, tenancy: null });
  const times = await repeat(10 * rounds, () => timed(() => listApiKeys(ports, apiKeys)));
  const spread = computeSpread(times.map(({ ms }) => ms));
  return figure('list of the newest 500 of a million keys, and their number', kind, '≤ 300 ms', spread, ms(spread.median));
}

/** Opens a connection. @returns a function that places a call, and waits for the first line of the response */
async function openConnection({ core, path }: Endpoint) {
  const { hostname, port, host } = new URL(core.url);
  const socket = connect(Number(port), hostname).setNoDelay();
  await once(socket, 'connect');
  const body = '{"contact":{"phone":"+493012345678","name":"Ada Lovelace"},"variables":{"orderNumber":"4711"}}';
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  return {
    async place(key: string): Promise<string> {
      socket.write(`${head}X-API-Key: ${key}\r\n\r\n${body}`);
      const [answer] = await once(socket, 'data');
      return answer.toString('latin1');
    },
    close: () => socket.destroy(),
  };
}

/**
 * Places calls at a constant rate until a promise is settled, without waiting for earlier responses.
 *
 * @returns the times of the requests in ms, including the wait for a free connection: percentiles, and the maximum
 */
export async function placeAtRate(endpoint: Endpoint, key: string, perSecond: number, until: Promise<unknown>) {
  const opened = await Promise.all(Array.from({ length: 256 }, () => openConnection(endpoint)));
  // The connections take turns, because the core closes those that are idle for long.
  const free = [...opened];
  const times: number[] = [];
  let refused = '';
  let isOver = false;
  void Promise.allSettled([until]).then(() => {
    isOver = true;
  });
  const start = performance.now();
  let sent = 0;
  for (let due = 0; !isOver || times.length < due; await pause(1)) {
    if (!isOver) due = Math.floor(((performance.now() - start) / 1_000) * perSecond);
    for (; sent < due && free.length > 0; sent++) {
      const connection = free.shift();
      const dueAt = start + (sent / perSecond) * 1_000;
      connection?.place(key).then((answer) => {
        if (!answer.startsWith('HTTP/1.1 202')) refused = answer;
        times.push(performance.now() - dueAt);
        free.push(connection);
      });
    }
  }
  for (const { close } of opened) close();
  await until;
  if (refused !== '') throw new Error(`A call wasn't placed:\n${refused}`);
  times.sort((a, b) => a - b);
  const percentile = (share: number) => times[Math.ceil(times.length * share) - 1] ?? Number.NaN;
  return { p50: percentile(0.5), p99: percentile(0.99), p999: percentile(0.999), max: percentile(1) };
}

/**
 * Places calls at half of the rate that 64 connections reach. Alternates with a server that only syncs a file: a busy host pauses that
 * server as well, so its times show which delays aren't the core's.
 *
 * @param seconds the duration of each round @returns Markdown
 */
export async function measureTail(kind: DatabaseKind, rounds: number, seconds: number): Promise<string> {
  await using stage = await openStage(kind);
  await using durable = await startServer('servers/durable.ts', { FILE: join(freshFolder(), 'calls') });
  const rate = (await load({ ...placing(stage, stage.keys), seconds: 5 })).perSecond / 2;
  const sides = { [databaseLabel(kind)]: stage.core, 'the minimum: Koa that only syncs a file': durable };
  const measured = await inTurn(sides, rounds, (core, round) =>
    placeAtRate({ ...stage, core }, stage.key, rate, pause(round === 0 ? 1_000 : seconds * 1_000)),
  );
  return tableOf(Object.entries(measured), {
    '': ([name]) => name,
    'requests per second': () => rate.toFixed(0),
    'p50 in ms': ([, { p50 }]) => withRange(p50, 1),
    p99: ([, { p99 }]) => withRange(p99, 1),
    'p99.9': ([, { p999 }]) => withRange(p999, 1),
  });
}

const invalidLines = 1_000;

/**
 * Measures how long placing a call takes: alone, while a do-not-call list with a thousand invalid lines is refused, and while the same list
 * without these lines is imported. @returns Markdown
 */
export async function measureImport(kind: DatabaseKind, lines: number): Promise<string> {
  await using stage = await openStage(kind);
  const tasks = {
    alone: () => pause(30_000),
    [`${count(lines)} lines, ${count(invalidLines)} of them invalid`]: prepareImport(stage, lines, invalidLines),
    [`${count(lines)} lines`]: prepareImport(stage, lines, 0),
  };
  const place = (until: Promise<unknown>) => placeAtRate(stage, stage.key, 1_000, until);
  // The first calls only warm up the code.
  await place(pause(5_000));
  const rows: string[][] = [];
  for (const [name, task] of Object.entries<() => Promise<void>>(tasks)) {
    const done = timed(task);
    const { p50, p99, p999, max } = await place(done);
    const took = name === 'alone' ? '' : `${((await done).ms / 1_000).toFixed(0)} s`;
    rows.push([name, databaseLabel(kind), took, ...[p50, p99, p999, max].map((ms) => ms.toFixed(1))]);
    say(`${kind}: ${name}: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
  }
  return table(['time to place a call, in ms', 'database', 'import took', 'p50', 'p99', 'p99.9', 'max'], rows);
}

/** Writes a list whose invalid lines are spread over the file. @returns a function that imports it, and checks the result */
function prepareImport({ database, tenants }: Stage, lines: number, invalid: number): () => Promise<void> {
  const path = join(freshFolder(), 'numbers.csv');
  const step = Math.floor(lines / invalid);
  writeFileSync(path, Array.from({ length: lines }, (_, n) => (n % step === step - 1 ? 'nobody' : `+4940${20_000_000 + n}`)).join('\n'));
  const admin = fileURLToPath(new URL('../../core/admin.ts', import.meta.url));
  const command = [admin, '--json', 'do-not-call', 'import', path, '--account', tenants.account.id];
  return async () => {
    // The command fails if a line is invalid, but prints the same fields.
    const { stdout } = await run(process.execPath, command, { ...process.env, DATABASE_URL: database }).catch((failed) => failed);
    const { added, wrong } = JSON.parse(stdout || '{}');
    if (added !== (invalid === 0 ? lines : 0) || wrong?.length !== invalid) throw new Error(`Unexpected result of the import: ${stdout}`);
  };
}

/**
 * Checks whether the time that a refusal takes reveals why a key was refused. Sends keys of every kind in random order, and compares the
 * times. A malformed key is refused faster, because it isn't looked up. That's fine, because the format isn't secret. The other kinds must
 * take the same time.
 */
export async function compareTimes(kind: DatabaseKind, requests: number): Promise<string> {
  await using stage = await openStage(kind);
  const keys = Object.entries(await refusedKeys(stage)).map(([reason, key]) => ({ reason, key, times: [] as number[] }));
  const connection = await openConnection(stage);
  for (let n = 0; n < requests * keys.length; n++) {
    const chosen = keys[Math.floor(Math.random() * keys.length)];
    const { ms } = await timed(() => connection.place(chosen?.key ?? ''));
    // The first requests are only a warm-up.
    if (n > requests) chosen?.times.push(ms);
  }
  connection.close();
  return tableOf(keys, {
    [databaseLabel(kind)]: ({ reason }) => reason,
    'median in µs': ({ times }) => (computeSpread(times).median * 1_000).toFixed(1),
    'z, compared with an unknown key': ({ times }) => rankTest(times, keys[0]?.times ?? []).toFixed(1),
  });
}

/** Returns keys that are refused, by reason. The first one is unknown. */
async function refusedKeys({ ports, storage, tenants, unknown, revoked }: Stage): Promise<Record<string, string | undefined>> {
  const { database } = storage;
  const { account, siblingAccount, otherAccount, users } = tenants;
  const [expired] = await insertKeys(database, 1, users.sibling, siblingAccount, { expires_at: 1 });
  const limits = { limits_version: 'bench', addresses: '["192.0.2.0/24"]' };
  const [elsewhere] = await insertKeys(database, 1, users.other, otherAccount, limits);
  const [orphaned] = await insertKeys(database, 1, users.teammate, account);
  await deleteUser(ports, operator, users.teammate, false);
  const refused = { unknown: unknown[0], revoked: revoked[0], expired, 'of a deleted user': orphaned, 'from elsewhere': elsewhere };
  return { ...refused, malformed: 'svc_sk_live_nonsense' };
}

/** Returns how many standard deviations the ranks are apart (Mann–Whitney U test). Above about 3, the times differ. */
function rankTest(a: readonly number[], b: readonly number[]): number {
  const all = [...a.map((value) => ({ value, isInA: true })), ...b.map((value) => ({ value, isInA: false }))];
  all.sort((first, second) => first.value - second.value);
  const ranks = all.reduce((sum, { isInA }, index) => (isInA ? sum + index + 1 : sum), 0);
  const [n, m] = [a.length, b.length];
  const expected = (n * (n + m + 1)) / 2;
  return (ranks - expected) / Math.sqrt((n * m * (n + m + 1)) / 12);
}

/** The memory in MB after this many seconds. */
type Sample = { seconds: number; rss: number };

export type Soak = Awaited<ReturnType<typeof soak>>;

const connections = 64;

/** Loads a core with half of the requests that it can handle, and records its memory, files and response times. Needs Linux. */
export async function soak(kind: DatabaseKind, minutes: number) {
  const { machine, ...origin } = await describeOrigin();
  await using stage = await openStage(kind);
  const about = { ...origin, machine: { ...machine, [kind]: await databaseVersion(stage) }, database: kind };
  const { core, path, key, unknown } = stage;
  const target = (seconds: number, pauseMs: number): Target => {
    return { server: core, kind: 'mix', parameters: [path, key, unknown[0] ?? '', String(pauseMs)], successes: 0.75, connections, seconds };
  };
  const { perSecond: peakPerSecond } = await load(target(20, 0));
  // With this pause, each connection sends half as many requests as it can.
  const pauseMs = Math.round((connections / peakPerSecond) * 1_000);
  const watch = watchOtherLoad(true);
  const samples: Sample[] = [];
  const start = performance.now();
  const sample = () => samples.push({ seconds: Math.round((performance.now() - start) / 1_000), rss: readMegabytes(core.pid) });
  const timer = setInterval(sample, 10_000);
  const measured = await repeat(minutes, async (before) => {
    const loaded = await load(target(60, pauseMs), before + 1);
    say(`minute ${before + 1}: ${samples.at(-1)?.rss.toFixed(1)} MB, ${Math.round(loaded.perSecond)} requests per second`);
    return { minute: before + 1, ...loaded, files: readdirSync(`/proc/${core.pid}/fd`).length };
  });
  clearInterval(timer);
  watch.stop();
  return { ...about, peakPerSecond, otherLoad: watch.max, memory: memoryOver(samples), minutes: measured, samples };
}

/**
 * Determines whether memory is flat. It is if even the highest estimate of its slope is less than 5 MB per hour, ignoring the first sixth of
 * the run.
 */
export function memoryOver(samples: readonly Sample[]) {
  const warmUp = (samples.at(-1)?.seconds ?? 0) / 6;
  const points = samples.filter(({ seconds }) => seconds > warmUp).map(({ seconds, rss }) => ({ x: seconds / 3_600, y: rss }));
  const slope = slopeWithRange(points);
  const peak = Math.max(...samples.map(({ rss }) => rss));
  return { warmUpMinutes: Math.round(warmUp / 60), ...slope, peak, isFlat: slope.max < 5 };
}

/** The peak memory of one run of the command in MB, and its processor time in seconds. */
type Usage = { step: string; memory: number; seconds: number };

export type LongFile = Awaited<ReturnType<typeof measureLongFile>>;

/** Places a file of this many lines with the published command: checks it, places half of it, resumes, and runs the command once more. */
export async function measureLongFile(lines: number) {
  const origin = await describeOrigin();
  await using stage = await openStage('sqlite');
  const home = freshFolder();
  const callkey = await packCommand();
  const { PATH = '' } = process.env;
  const env = { PATH, HOME: home, CALLKEY_SERVER: stage.core.url, CALLKEY_API_KEY: stage.key };
  const file = join(home, 'calls.csv');
  const line = (_: unknown, n: number) => `+4930${10_000_000 + n},Ada Lovelace ${n},Europe/Berlin,order-${n},"An appointment, on Monday"`;
  // The lines have request IDs, because the check compares those, too.
  const content = ['phone,name,timeZone,requestId,var.what', ...Array.from({ length: lines }, line)].join('\n');
  writeFileSync(file, content);
  const place = ['place', stage.tenants.campaign.id, '--from', file];
  const runs: Usage[] = [];
  const measure = async (step: string, args: readonly string[], stopAfter = Number.POSITIVE_INFINITY) => {
    const command = ['--import', reportUsage, callkey, 'call', ...args];
    const child = spawn(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let results = 0;
    createInterface({ input: child.stdout }).on('line', () => {
      if (++results === stopAfter) child.kill('SIGINT');
    });
    const [output] = await Promise.all([text(child.stderr), track(child)]);
    const end = output.lastIndexOf('\n');
    const { maxRSS, userCPUTime, systemCPUTime } = JSON.parse(output.slice(end));
    const usage = { step, memory: maxRSS * 1.024e-3, seconds: (userCPUTime + systemCPUTime) / 1e6 };
    runs.push(usage);
    say(`${step}: ${usage.memory.toFixed(0)} MB, ${usage.seconds.toFixed(0)} s, ${results} results\n${output.slice(0, end).trim()}`);
    if (stopAfter === Number.POSITIVE_INFINITY && results !== lines) throw new Error(`${step}: ${results} results instead of ${lines}.`);
  };
  await measure('checked, with `--dry-run`', [...place, '--dry-run']);
  await measure('placed, and stopped with Ctrl-C halfway', place, lines / 2);
  await measure('the rest, with `resume`', ['resume']);
  await measure('the same command once more', place);
  const [row] = await stage.storage.database.read('calls').count({ calls: '*' }).countDistinct({ phones: 'phone' });
  if (Number(row?.['calls']) !== lines || Number(row?.['phones']) !== lines)
    throw new Error(`Expected ${lines} calls and as many phone numbers, but found ${JSON.stringify(row)}.`);
  return { ...origin, lines, megabytes: content.length / 1e6, runs, firstCall: readFirstCall(home) };
}

/**
 * A module that makes the command write its memory and CPU time as its last line on standard error. It also wraps `process.kill`,
 * because after Ctrl-C, the command ends itself with the same signal, without the event `exit`.
 */
const reportUsage = `data:text/javascript,import { writeSync } from 'node:fs';
  const report = () => writeSync(2, '\\n' + JSON.stringify(process.resourceUsage()));
  const kill = process.kill.bind(process);
  process.kill = (...args) => (report(), kill(...args));
  process.on('exit', report);`;

/** Reads from the journal how long after the check the core placed the first call, in ms. */
function readFirstCall(home: string): number {
  const runs = join(home, '.local', 'state', 'callkey', 'runs');
  const journal = readFileSync(join(runs, readdirSync(runs)[0] ?? ''), 'utf8');
  const instant = (name: string) => Date.parse(new RegExp(`"${name}":"([^"]*)"`).exec(journal)?.[1] ?? '');
  return instant('placedAt') - instant('startedAt');
}
