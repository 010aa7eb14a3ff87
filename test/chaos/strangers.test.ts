import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { makeKeyValue } from '#contract/key-value.ts';
import { onDemand } from '../support/tenants.ts';
import { type Attack, describeAttacks, isQuick } from './attack.ts';
import { startCrowd } from './load.ts';
import { callBody, openScene, type Scene, watchMemory } from './scene.ts';

/** In MB. */
const memoryBound = 300;
/**
 * How many times longer the 99th percentile may become during the attack, and the time in ms that is always acceptable, because the
 * attacker uses the same processors.
 */
const maxSlowdown = 10;
const alwaysAcceptable = 250;

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const send = (method: string, path: string, body: string, more = '', length = Buffer.byteLength(body)) =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${more}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`;
const signIn = send('POST', '/console/session', JSON.stringify({ email: 'ada@example.com', password: 'a wrong password' }));
const pieces = `POST /console/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
const put = send('PUT', '/', '{}');
const place = (scene: Scene, key: string, body: object, length?: number) =>
  send('POST', new URL(onDemand('http://x', scene.campaignId)).pathname, JSON.stringify(body), `X-API-Key: ${key}\r\n`, length);

type Stranger = Pick<Attack, 'name' | 'title'> & {
  inQuick?: true;
  /** Attacks until the trial ends. @returns a function that ends the attack and checks its result, if necessary */
  begin(scene: Scene): unknown;
};

/** The attacks. Only `clients` have a valid key: they just behave badly. */
const strangers: readonly Stranger[] = [
  { name: 'clients', title: 'slow clients, and clients that hang up', inQuick: true, begin: beSlowAndHangUp },
  { ...pipelining('sign-ins', 'sign-ins', () => signIn), inQuick: true },
  pipelining('keys', 'unknown keys', (scene) => place(scene, makeKeyValue(randomBytes), callBody('never'))),
  pipelining('pages', 'GET /', () => get('/')),
  pipelining('sessions', 'GET /console/session', () => get('/console/session')),
  {
    ...{ name: 'unread', title: '300 connections that pipeline and never read', inQuick: true },
    begin: (scene) => times(300, () => open(scene).pause().write(get('/').repeat(2_000))),
  },
  {
    ...{ name: 'puts', title: '20 connections that each pipeline 250 KB of PUT' },
    begin: (scene) => times(20, () => repeat(scene, put.repeat(250_000 / put.length))),
  },
  {
    ...{ name: 'pieces', title: '300 connections that send bodies in chunks of one byte' },
    begin: (scene) => times(300, () => repeat(scene, `${pieces}${'1\r\nx\r\n'.repeat(10_000)}`)),
  },
  // From several addresses, because connections at the limit of one network would replace each other.
  { name: 'silent', title: '8,000 silent connections', begin: (scene) => times(8_000, (n) => open(scene, `127.0.1.${n % 10}`)) },
];

/** A stranger can't deny the service to anyone: valid keys get responses in time and never a 503, and the core's memory is bounded. */
const attacks: readonly Attack[] = strangers.map(({ name, title, inQuick, begin }) => ({
  ...{ name, title, quickOn: inQuick ? 'sqlite' : null },
  async run(trial) {
    const scene = await openScene(trial);
    const duration = isQuick ? 2_000 : 15_000;
    const quiet = await placeFor(scene, duration / 3);
    const end = begin(scene);
    const watched = watchMemory(trial, scene.core());
    const during = await placeFor(scene, duration);
    const memory = watched();
    if (typeof end === 'function') await end();
    scene.ledger.note(`p99 ${quiet} ms before, ${during} ms during, ${memory} MB at most`);
    if (memory > memoryBound) scene.ledger.fail(`the core used ${memory} MB`);
    if (!isQuick && during > Math.max(alwaysAcceptable, quiet * maxSlowdown)) scene.ledger.fail('valid keys waited');
    await scene.stopAndCompare();
  },
}));

let placements = 0;

/** Places calls for this long. @returns the 99th percentile of their times, in ms */
async function placeFor(scene: Scene, ms: number): Promise<number> {
  const took: number[] = [];
  const placing = startCrowd(scene.trial, 4, async () => {
    const started = performance.now();
    await scene.mustPlace(`valid-${++placements}`);
    took.push(performance.now() - started);
    await pause(5);
  });
  await pause(ms);
  await placing.stop();
  return Math.round(took.toSorted((a, b) => a - b).at(Math.floor(took.length * 0.99)) ?? 0);
}

function open(scene: Scene, localAddress = '127.0.0.1'): Socket {
  const { port, hostname } = new URL(scene.core().url);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => undefined);
  scene.trial.cleanup.defer(() => void socket.destroy());
  return socket;
}

/** Runs a function at this interval in ms until the trial ends. */
function every(scene: Scene, ms: number, work: () => unknown): void {
  const timer = setInterval(work, ms);
  scene.trial.cleanup.defer(() => clearInterval(timer));
}

/**
 * Attacks with one connection that sends up to 1 MB of requests per second, or less if the core reads more slowly, and reads the responses.
 */
function pipelining(name: string, what: string, makeRequest: (scene: Scene) => string): Stranger {
  const begin = (scene: Scene) => {
    const request = makeRequest(scene);
    const chunk = request.repeat(100_000 / request.length);
    let socket = open(scene).resume();
    every(scene, 100, () => {
      if (socket.destroyed) socket = open(scene).resume();
      if (socket.writableLength < 2_000_000) socket.write(chunk);
    });
  };
  return { name: `pipelined-${name}`, title: `one connection pipelining ${what}`, begin };
}

/** Sends a text again whenever the core has accepted it, and reads the responses. */
function repeat(scene: Scene, text: string): void {
  const socket = open(scene).resume();
  const write = () => void (socket.writable && socket.write(text));
  socket.on('drain', write);
  write();
}

function times(count: number, work: (n: number) => void): void {
  for (let n = 0; n < count; n++) work(n);
}

/**
 * Attacks with clients of which half send their headers byte by byte, and half an endless body. At the same time, one client after another
 * sends a call and hangs up.
 */
function beSlowAndHangUp(scene: Scene): () => Promise<void> {
  const { trial, key } = scene;
  times(isQuick ? 100 : 500, (n) => {
    const socket = open(scene);
    const head = place(scene, key, {}, 60_000);
    let sent = n % 2 ? 0 : head.length;
    socket.write(head.slice(0, sent));
    every(scene, 200, () => socket.writable && socket.write(head[sent++] ?? ' '));
  });
  const bodies: ReturnType<typeof callBody>[] = [];
  const hangingUp = startCrowd(trial, 1, async (n) => {
    const body = callBody(`hung-up-${n}`);
    bodies.push(body);
    const socket = open(scene);
    await Promise.race([once(socket, 'connect'), pause(2_000)]);
    await new Promise<void>((resolve) => socket.write(place(scene, key, body), () => resolve()));
    socket.resetAndDestroy();
    await pause(20);
  });
  return async () => {
    await hangingUp.stop();
    // The client must find out whether the call was placed, by asking again with the same ID.
    for (const body of bodies) await scene.mustPlace(body);
    scene.ledger.note(`${bodies.length} hung up`);
  };
}

describeAttacks(...attacks);
