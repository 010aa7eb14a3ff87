import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type DatabaseKind, openStage, type Stage } from './environment.ts';
import { databaseLabel, table, withRange } from './markdown.ts';
import { freshFolder, startServer } from './processes.ts';
import { placing } from './requests.ts';
import { computeSpread, inTurn } from './spread.ts';
import { load } from './wrk.ts';

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
  const { perSecond } = await load(placing(stage.core.url, stage.path, stage.keys), 5);
  const sides = [
    { ...stage, name: databaseLabel(kind) },
    { ...stage, name: 'the minimum: Koa that only syncs a file', core: durable },
  ];
  // The first round is a warm-up.
  const measured = await inTurn(sides, rounds + 1, (side, round) => placeAtRate(side, perSecond / 2, round === 0 ? 1 : seconds));
  await stage.close();
  await durable.stop();
  const lines = measured.map(({ item: { name }, results }) => {
    const sorted = results.slice(1).map((times) => times.toSorted((a, b) => a - b));
    const percentile = (share: number) => computeSpread(sorted.map((times) => times[Math.floor(times.length * share)] ?? Number.NaN));
    return [name, (perSecond / 2).toFixed(0), ...[0.5, 0.99, 0.999].map((share) => withRange(percentile(share), 1))];
  });
  return table(['', 'requests per second', 'p50 in ms', 'p99', 'p99.9'], lines);
}

type Side = Pick<Stage, 'path' | 'key'> & { core: { url: string } };

/** @returns the time of each request in ms, including the wait for a free connection */
export async function placeAtRate({ core, path, key }: Side, perSecond: number, seconds: number): Promise<number[]> {
  const { hostname, port, host } = new URL(core.url);
  const sockets = Array.from({ length: connections }, () => connect(Number(port), hostname).setNoDelay());
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n`;
  const body = '{"contact":{"phone":"+493012345678","name":"Ada Lovelace"},"variables":{"orderNumber":"4711"}}';
  const request = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  // The connections take turns, because the core closes those that are idle for long.
  const free = [...sockets];
  const times: number[] = [];
  let refused = '';
  const count = Math.floor(perSecond * seconds);
  const start = performance.now();
  for (let sent = 0; sent < count; await setTimeout(1)) {
    const due = Math.min(count, Math.floor(((performance.now() - start) / 1_000) * perSecond));
    for (; sent < due && free.length > 0; sent++) {
      const socket = free.shift();
      const dueAt = start + (sent / perSecond) * 1_000;
      socket?.write(request);
      socket?.once('data', (answer: Buffer) => {
        if (!answer.toString('latin1', 0, 12).endsWith(' 202')) refused = answer.toString();
        times.push(performance.now() - dueAt);
        free.push(socket);
      });
    }
  }
  while (times.length < count) await setTimeout(1);
  for (const socket of sockets) socket.destroy();
  if (refused !== '') throw new Error(`A call wasn't placed:\n${refused}`);
  return times;
}
