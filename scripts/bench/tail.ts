import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { openStage } from './environment.ts';
import { databaseLabel, table, withRange } from './pages.ts';
import { type DatabaseKind, freshFolder, startServer } from './processes.ts';
import { inTurn } from './spread.ts';
import { type Endpoint, load, placing } from './wrk.ts';

const connections = 256;

/**
 * Places calls at half of the rate that 64 connections reach, without waiting for earlier responses. wrk would hide the server's pauses,
 * because a connection sends its next request only after the last response. Each time is measured from when the request was due. Alternates
 * with a server that only syncs a file, because a busy host pauses that server as well.
 *
 * @param rounds the number of rounds @param seconds the duration of each round
 */
export async function measureTail(kind: DatabaseKind, rounds: number, seconds: number): Promise<string> {
  const stage = await openStage(kind);
  const durable = await startServer('servers/durable.ts', { FILE: join(freshFolder(), 'calls') });
  const rate = (await load(placing(stage, stage.keys), { seconds: 5 })).perSecond / 2;
  const sides = { [databaseLabel(kind)]: stage.core, 'the minimum: Koa that only syncs a file': durable };
  const measured = await inTurn(sides, rounds, async (core, round) =>
    percentiles(await placeAtRate({ ...stage, core }, stage.key, rate, round === 0 ? 1 : seconds)),
  );
  await stage.close();
  await durable.stop();
  const lines = Object.entries(measured).map(([name, { p50, p99, p999 }]) => {
    return [name, rate.toFixed(0), ...[p50, p99, p999].map((spread) => withRange(spread, 1))];
  });
  return table(['', 'requests per second', 'p50 in ms', 'p99', 'p99.9'], lines);
}

export function percentiles(times: readonly number[]) {
  const sorted = times.toSorted((a, b) => a - b);
  const percentile = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
  return { p50: percentile(0.5), p99: percentile(0.99), p999: percentile(0.999), max: percentile(1) };
}

/** Opens a connection. @returns a function that places a call, and waits for the first line of the response */
export async function openConnection({ core, path }: Endpoint) {
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

/** @returns the time of each request in ms, including the wait for a free connection */
export async function placeAtRate(endpoint: Endpoint, key: string, perSecond: number, seconds: number): Promise<number[]> {
  const opened = await Promise.all(Array.from({ length: connections }, () => openConnection(endpoint)));
  // The connections take turns, because the core closes those that are idle for long.
  const free = [...opened];
  const times: number[] = [];
  let refused = '';
  const count = Math.floor(perSecond * seconds);
  const start = performance.now();
  for (let sent = 0; sent < count; await setTimeout(1)) {
    const due = Math.min(count, Math.floor(((performance.now() - start) / 1_000) * perSecond));
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
  while (times.length < count) await setTimeout(1);
  for (const { close } of opened) close();
  if (refused !== '') throw new Error(`A call wasn't placed:\n${refused}`);
  return times;
}
