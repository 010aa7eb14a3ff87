import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { makeKeyValue } from '#contract/key-value.ts';
import { onDemand } from '../../support/tenants.ts';
import { callBody, openScene, residentMegabytes, type Scene, stopAndCompare } from '../environment.ts';
import type { Case } from '../run.ts';

/** In MB. */
const memoryBound = 300;
/** How many times longer than before the attack the slowest hundredth may take; and what is short in ms, where the attacker has the same processors. */
const longer = 10;
const short = 250;

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const send = (method: string, path: string, body: string, more = '') =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${more}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const signIn = send('POST', '/console/session', JSON.stringify({ email: 'ada@example.com', password: 'a wrong password' }));
const post = 'POST /console/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
const put = send('PUT', '/', '{}');
const place = (scene: Scene) => {
  const { pathname } = new URL(onDemand(scene.core().url, scene.campaignId));
  return send('POST', pathname, JSON.stringify(callBody('never')), `X-API-Key: ${makeKeyValue(randomBytes)}\r\n`);
};

/** What one stranger does, without a key or a password that anybody has. */
const strangers: { name: string; title: string; isQuick?: true; begin(scene: Scene): void }[] = [
  { name: 'pipelined-sign-ins', title: 'one connection pipelining sign-ins', isQuick: true, begin: (scene) => pour(scene, signIn) },
  { name: 'pipelined-keys', title: 'one connection pipelining unknown keys', begin: (scene) => pour(scene, place(scene)) },
  { name: 'pipelined-pages', title: 'one connection pipelining GET /', begin: (scene) => pour(scene, get('/')) },
  {
    name: 'pipelined-sessions',
    title: 'one connection pipelining GET /console/session',
    begin: (scene) => pour(scene, get('/console/session')),
  },
  {
    name: 'unread',
    title: '300 connections that pipeline and never read',
    isQuick: true,
    begin: (scene) => times(300, () => open(scene).pause().write(get('/').repeat(2_000))),
  },
  {
    name: 'puts',
    title: '20 connections of 250 KB of PUT',
    begin: (scene) => times(20, () => repeat(scene, put.repeat(250_000 / put.length))),
  },
  {
    name: 'pieces',
    title: '300 connections of bodies in chunks of one byte',
    begin: (scene) => times(300, () => repeat(scene, `${post}${'1\r\nx\r\n'.repeat(10_000)}`)),
  },
  // From several addresses, or those at the limit of one network would make room for each other.
  { name: 'silent', title: '8,000 silent connections', begin: (scene) => times(8_000, (n) => open(scene, `127.0.1.${n % 10}`)) },
];

/** A stranger takes the service from nobody: valid keys are answered in time and never with 503, and the core's memory is bounded. */
export const strangersCases: readonly Case[] = strangers.map(({ name, title, isQuick, begin }) => ({
  name,
  title,
  quickDatabases: isQuick ? ['sqlite'] : [],
  async attack(trial) {
    const scene = await openScene(trial);
    const duration = trial.isQuick ? 2_000 : 15_000;
    const quiet = await placeFor(scene, duration / 3);
    begin(scene);
    const { pid = 0 } = scene.core().child;
    let memory = 0;
    const watching = setInterval(() => {
      memory = Math.max(memory, residentMegabytes(pid));
    }, 250);
    trial.cleanup.defer(() => clearInterval(watching));
    const during = await placeFor(scene, duration);
    clearInterval(watching);
    scene.ledger.note(`p99 ${quiet} ms before, ${during} ms during, ${memory} MB at the most`);
    if (memory > memoryBound) scene.ledger.fail(`the core took ${memory} MB`);
    if (!trial.isQuick && during > Math.max(short, quiet * longer)) scene.ledger.fail('valid keys waited');
    await stopAndCompare(scene);
  },
}));

let placements = 0;

/** @returns the slowest hundredth, in ms */
async function placeFor(scene: Scene, ms: number): Promise<number> {
  const end = performance.now() + ms;
  const took: number[] = [];
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (performance.now() < end) {
        const started = performance.now();
        const { status } = await scene.ledger.place(scene.core().url, scene.campaignId, scene.key, callBody(`valid-${++placements}`));
        took.push(performance.now() - started);
        if (status !== 202) scene.ledger.fail(`a valid key was answered ${status}`);
        await pause(5);
      }
    }),
  );
  return Math.round(took.toSorted((one, other) => one - other).at(Math.floor(took.length * 0.99)) ?? 0);
}

function open(scene: Scene, localAddress = '127.0.0.1'): Socket {
  const { port, hostname } = new URL(scene.core().url);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => undefined);
  scene.trial.cleanup.defer(() => void socket.destroy());
  return socket;
}

/** Sends 1 MB of a request a second, as far as the core takes it, and reads the answers. */
function pour(scene: Scene, request: string): void {
  const chunk = request.repeat(100_000 / request.length);
  let socket = open(scene).resume();
  const timer = setInterval(() => {
    if (socket.destroyed) socket = open(scene).resume();
    if (socket.writableLength < 2_000_000) socket.write(chunk);
  }, 100);
  scene.trial.cleanup.defer(() => clearInterval(timer));
}

/** Sends a text again whenever the core has taken it, and reads the answers. */
function repeat(scene: Scene, text: string): void {
  const socket = open(scene).resume();
  const write = () => void (socket.writable && socket.write(text));
  socket.on('drain', write);
  write();
}

function times(count: number, work: (n: number) => void): void {
  for (let n = 0; n < count; n++) work(n);
}
