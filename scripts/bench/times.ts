// Measures how long requests take from when they were due, which wrk can't do: its connections send nothing while the server pauses.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { operator } from '../../core/domain/audit/audit.ts';
import { deleteUser } from '../../core/domain/directory/users.ts';
import { insertKeys, openStage, type Stage } from './environment.ts';
import { count, databaseLabel, table, tableOf, withRange } from './pages.ts';
import { type DatabaseKind, freshFolder, run, startServer } from './processes.ts';
import { computeSpread, inTurn, say, timed } from './spread.ts';
import { type Endpoint, load, placing } from './wrk.ts';

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
async function placeAtRate(endpoint: Endpoint, key: string, perSecond: number, until: Promise<unknown>) {
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
