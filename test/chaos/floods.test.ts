import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { ask, readCookies } from '../support/http.ts';
import { onDemand, password } from '../support/tenants.ts';
import { callBody, describeAttacks, isQuick, openScene, readPeakMemory, type Scene, startCrowd, type Trial } from './attack.ts';

/** In MB. */
const memoryBound = 300;
/**
 * How many times longer the 99th percentile may become during the attack, and the time in ms that is always acceptable, because the
 * attacker uses the same processors.
 */
const maxSlowdown = 10;
const alwaysAcceptable = 250;
/** In ms. Attacks last at least this long. */
const duration = isQuick ? 1_000 : 15_000;

let placements = 0;

/**
 * Places calls with a valid key until a promise is settled. Each must get its response in time, and never a 503.
 *
 * @returns the 99th percentile of the time that placing took, in ms
 */
async function placeDuring(scene: Scene, something: Promise<unknown>, width: number, every: number): Promise<number> {
  const took: number[] = [];
  const placing = startCrowd(scene.trial, width, async () => {
    const started = performance.now();
    await scene.mustPlace(`valid-${++placements}`);
    took.push(performance.now() - started);
    await pause(every);
  });
  await something;
  await placing.stop();
  const memory = readPeakMemory(scene.core());
  if (memory > memoryBound) scene.ledger.fail(`the core used ${memory} MB`);
  const p99 = Math.round(took.toSorted((a, b) => a - b).at(Math.floor(took.length * 0.99)) ?? 0);
  scene.ledger.note(`p99 ${p99} ms, ${memory} MB at most`);
  return p99;
}

/** Clients that behave badly can't delay the others. */
async function clients(trial: Trial): Promise<void> {
  const scene = await openScene(trial);
  const quiet = await placeDuring(scene, pause(duration / 3), 4, 5);
  const during = await placeDuring(scene, beSlowAndHangUp(scene), 4, 5);
  if (!isQuick && during > Math.max(alwaysAcceptable, quiet * maxSlowdown)) scene.ledger.fail('valid keys waited');
  await scene.stopAndCompare();
}

/**
 * Attacks with clients: half of them send their headers byte by byte, the other half an endless body. At the same time, one client after
 * another sends a call and hangs up.
 */
async function beSlowAndHangUp(scene: Scene): Promise<void> {
  const { trial, key } = scene;
  const { port, pathname } = new URL(onDemand(scene.core().url, scene.campaignId));
  const open = () => {
    const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
    trial.cleanup.defer(() => void socket.destroy());
    return socket;
  };
  const place = (body: object, length = JSON.stringify(body).length) =>
    `POST ${pathname} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${JSON.stringify(body)}`;
  for (let n = 0; n < (isQuick ? 100 : 500); n++) {
    const socket = open();
    const head = place({}, 60_000);
    let sent = n % 2 ? 0 : head.length;
    socket.write(head.slice(0, sent));
    const timer = setInterval(() => socket.writable && socket.write(head[sent++] ?? ' '), 200);
    socket.on('close', () => clearInterval(timer));
  }
  const bodies: ReturnType<typeof callBody>[] = [];
  const hangingUp = startCrowd(trial, 1, async (n) => {
    const body = callBody(`hung-up-${n}`);
    bodies.push(body);
    const socket = open();
    await Promise.race([once(socket, 'connect'), pause(2_000)]);
    await new Promise<void>((resolve) => socket.write(place(body), () => resolve()));
    socket.resetAndDestroy();
    await pause(20);
  });
  await pause(duration);
  await hangingUp.stop();
  // The client must find out whether the call was placed, by asking again with the same ID.
  for (const body of bodies) await scene.mustPlace(body);
  scene.ledger.note(`${bodies.length} hung up`);
}

/** In ms. The short version runs in parallel with other tests, and only records how long a sign-in took. */
const maxSignInMs = 10_000;
const patience = 60_000;

/** Returns a network: every third network belongs to the same provider, and the other networks to as many providers as possible. */
function newNetwork(n: number): string {
  const group = () => randomInt(0x1_0000).toString(16);
  if (n % 3 === 0) return `2001:db8:${group()}::1`;
  return n % 3 === 1 ? `${randomInt(1, 224)}.${randomInt(256)}.${randomInt(256)}.1` : `2${randomInt(0x1000).toString(16)}:${group()}::1`;
}

/** A flood of sign-ins, each from a new network, keeps neither valid keys nor a real user out. */
async function signIns(trial: Trial): Promise<void> {
  const scene = await openScene(trial, { environment: { TRUSTED_PROXIES: '127.0.0.1' } });
  // The flood keeps this process so busy that calls are sent late, so only a few are placed.
  await placeDuring(scene, signInDuringFlood(scene), 1, 100);
  await scene.stopAndCompare();
}

/** Invented users sign in from many networks, while a real user signs in with a new browser and with a known one. */
async function signInDuringFlood(scene: Scene): Promise<void> {
  const { ledger } = scene;
  const { url } = scene.core();
  const attempt = (email: string, secret: string, from: string, cookie?: string) =>
    ask('POST', `${url}/console/session`, { body: { email, password: secret }, headers: { 'X-Forwarded-For': from }, cookie });
  const known = readCookies(await attempt('ada@example.com', password, '198.51.100.1'));
  const flooding = startCrowd(scene.trial, isQuick ? 64 : 256, (n) =>
    attempt(`nobody${n}@example.com`, 'a password', newNetwork(n)).catch(() => undefined),
  );
  const start = performance.now();
  let slowest = 0;
  for (let n = 0; n < (isQuick ? 1 : 10); n++) {
    await pause(500);
    const since = performance.now();
    let answer = await attempt('ada@example.com', password, `192.0.2.${n}`);
    while (answer.status === 429 && performance.now() - since < patience) {
      await pause(Number(answer.headers['retry-after']) * 1_000);
      answer = await attempt('ada@example.com', password, `192.0.2.${n}`);
    }
    const waited = performance.now() - since;
    slowest = Math.max(slowest, waited);
    if (answer.status !== 201 || (waited > maxSignInMs && !isQuick))
      ledger.fail(`a correct password got ${answer.status} after ${Math.round(waited)} ms`);
    const again = await attempt('ada@example.com', password, newNetwork(n), known);
    if (again.status !== 201) ledger.fail(`a known browser got ${again.status}`);
  }
  const rate = ((await flooding.stop()) * 1_000) / (performance.now() - start);
  ledger.note(`at ${Math.round(rate)} attempts per second, a new browser was signed in after ${Math.round(slowest)} ms at most`);
}

// What one connection or request can't do to others is tested in `http` and `storage/lanes.test.ts`.
describeAttacks(
  { name: 'clients', title: 'slow clients, and clients that hang up', quickOn: null, run: clients },
  { name: 'sign-ins', title: 'a flood of sign-ins, each from a new network', quickOn: 'sqlite', run: signIns },
);
