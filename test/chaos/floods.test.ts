import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { makeKeyValue } from '#contract/key-value.ts';
import { get } from '../support/core.ts';
import { ask, readCookies } from '../support/http.ts';
import { createKey, onDemand, openDirect, password, placeCall, signIn } from '../support/tenants.ts';
import { type Attack, callBody, describeAttacks, isQuick, openScene, readPeakMemory, type Scene, startCrowd } from './attack.ts';

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

const send = (method: string, path: string, body: string, more = '', length = Buffer.byteLength(body)) =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${more}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`;
const wrongPassword = send('POST', '/console/session', JSON.stringify({ email: 'ada@example.com', password: 'a wrong password' }));
const pieces = `POST /console/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
const place = (scene: Scene, key: string, body: object, length?: number) =>
  send('POST', new URL(onDemand('http://x', scene.campaignId)).pathname, JSON.stringify(body), `X-API-Key: ${key}\r\n`, length);

type Flood = Pick<Attack, 'name' | 'title' | 'quickOn'> & {
  environment?: Record<string, string>;
  /**
   * Whether the flood keeps the test's own process so busy that calls with the valid key are sent late. The test then places fewer of them,
   * and they only have to meet their deadline.
   */
  isBusy?: true;
  prepare?(scene: Scene): Promise<void>;
  /** Attacks until the trial ends, or checks something and ends earlier. */
  begin(scene: Scene): unknown;
};

/**
 * The floods. The short version includes only that of sign-ins, because tests in `http` cover what the others do to one connection, and
 * `test/storage/lanes.test.ts` covers the lanes. Only the ones named `clients` and `lanes` use valid keys: their clients just behave
 * badly.
 */
const floods: readonly Flood[] = [
  { name: 'clients', title: 'slow clients, and clients that hang up', begin: beSlowAndHangUp },
  {
    ...{ name: 'pipelined-sign-ins', title: 'one connection pipelining sign-ins' },
    begin: (scene) => pipeline(scene, 1, wrongPassword),
  },
  {
    ...{ name: 'pipelined-keys', title: 'one connection pipelining unknown keys' },
    begin: (scene) => pipeline(scene, 1, place(scene, makeKeyValue(randomBytes), callBody('never'))),
  },
  { name: 'pipelined-pages', title: 'one connection pipelining GET /', begin: (scene) => pipeline(scene, 1, get('/')) },
  {
    ...{ name: 'pipelined-sessions', title: 'one connection pipelining GET /console/session' },
    begin: (scene) => pipeline(scene, 1, get('/console/session')),
  },
  {
    ...{ name: 'unread', title: '300 connections that pipeline and never read' },
    begin: (scene) => times(300, () => open(scene).pause().write(get('/').repeat(2_000))),
  },
  {
    ...{ name: 'puts', title: '20 connections that each pipeline 250 KB of PUT' },
    begin: (scene) => pipeline(scene, 20, send('PUT', '/', '{}')),
  },
  {
    ...{ name: 'pieces', title: '300 connections that send bodies in chunks of one byte' },
    begin: (scene) => pipeline(scene, 300, `${pieces}${'1\r\nx\r\n'.repeat(10_000)}`),
  },
  // From several addresses, because connections at the limit of one network would replace each other.
  { name: 'silent', title: '8,000 silent connections', begin: (scene) => times(8_000, (n) => open(scene, `127.0.1.${n % 10}`)) },
  {
    name: 'lanes',
    title: 'floods of requests with another key, with unknown keys and in one session, and of slow searches by four users',
    ...{ isBusy: true, prepare: addEndedCalls, begin: floodAllLanes },
  },
  {
    ...{ name: 'sign-ins', title: 'a flood of sign-ins, each from a new network', environment: { TRUSTED_PROXIES: '127.0.0.1' } },
    ...{ quickOn: 'sqlite', isBusy: true, begin: signInDuringFlood },
  },
];

/** A flood can't deny the service to anyone: valid keys get responses in time and never a 503, and the core's memory is bounded. */
const attacks: readonly Attack[] = floods.map(({ environment = {}, isBusy, prepare, begin, ...row }) => ({
  ...{ quickOn: null, ...row },
  async run(trial) {
    const scene = await openScene(trial, { environment });
    await prepare?.(scene);
    const quiet = await placeDuring(scene, pause(duration / 3), isBusy);
    const during = await placeDuring(scene, Promise.all([begin(scene), pause(duration)]), isBusy);
    const memory = readPeakMemory(scene.core());
    scene.ledger.note(`p99 ${quiet} ms before, ${during} ms during, ${memory} MB at most`);
    if (memory > memoryBound) scene.ledger.fail(`the core used ${memory} MB`);
    if (!isQuick && !isBusy && during > Math.max(alwaysAcceptable, quiet * maxSlowdown)) scene.ledger.fail('valid keys waited');
    await scene.stopAndCompare();
  },
}));

let placements = 0;

/** Places calls until a promise is settled. @returns the 99th percentile of the time that placing took, in ms */
async function placeDuring(scene: Scene, something: Promise<unknown>, isBusy = false): Promise<number> {
  const took: number[] = [];
  const placing = startCrowd(scene.trial, isBusy ? 1 : 4, async () => {
    const started = performance.now();
    await scene.mustPlace(`valid-${++placements}`);
    took.push(performance.now() - started);
    await pause(isBusy ? 100 : 5);
  });
  await something;
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

/**
 * Opens connections that send 250 KB of this request again and again, each time when the system has accepted the previous 250 KB, and that
 * read the responses. A connection that the core closes is replaced.
 */
function pipeline(scene: Scene, count: number, request: string): void {
  const text = request.repeat(Math.ceil(250_000 / request.length));
  const connectOnce = () => {
    if (scene.trial.cleanup.disposed) return;
    const socket = open(scene).resume();
    const write = () => void (socket.writable && socket.write(text));
    socket.on('drain', write).on('close', () => setTimeout(connectOnce, 100));
    write();
  };
  times(count, connectOnce);
}

function times(count: number, work: (n: number) => void): void {
  for (let n = 0; n < count; n++) work(n);
}

/**
 * Attacks with clients: half of them send their headers byte by byte, the other half an endless body. At the same time, one client after
 * another sends a call and hangs up.
 */
async function beSlowAndHangUp(scene: Scene): Promise<void> {
  const { trial, key } = scene;
  times(isQuick ? 100 : 500, (n) => {
    const socket = open(scene);
    const head = place(scene, key, {}, 60_000);
    let sent = n % 2 ? 0 : head.length;
    socket.write(head.slice(0, sent));
    const timer = setInterval(() => socket.writable && socket.write(head[sent++] ?? ' '), 200);
    socket.on('close', () => clearInterval(timer));
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
  await pause(duration);
  await hangingUp.stop();
  // The client must find out whether the call was placed, by asking again with the same ID.
  for (const body of bodies) await scene.mustPlace(body);
  scene.ledger.note(`${bodies.length} hung up`);
}

/** Adds the calls that a search has to read. */
async function addEndedCalls({ database, campaignId, tenants }: Scene): Promise<void> {
  await using direct = await openDirect(database);
  const of = { campaign_id: campaignId, account_id: tenants.account.id, api_key_id: 'k', state: 'completed', placed_at: 1, ended_at: 1 };
  const count = isQuick ? 20_000 : 300_000;
  const rows = Array.from({ length: count }, (_, n) => ({ ...of, contact_id: `old-${n}`, request_id: `old-${n}`, name: 'Ada' }));
  await direct.storage.database.write.batchInsert('calls', rows, 100);
}

/** Another key, strangers and console users do everything they can at the same time. Another user of the console must not notice. */
async function floodAllLanes(scene: Scene): Promise<void> {
  const { ledger, trial, campaignId, cookie, tenants } = scene;
  const { url } = scene.core();
  const { keyValue: key } = await createKey(url, cookie);
  const searchers = await Promise.all(Array.from({ length: 4 }, () => signIn(url, tenants.users.account.email)));
  const search = `${url}/console/campaigns/${campaignId}/calls?search=nobody-has-this`;
  const session = `${url}/console/session`;
  const teammate = await signIn(url, tenants.users.teammate.email);
  const startFlood = (width: number, disturb: (n: number) => Promise<unknown>) =>
    startCrowd(trial, width, (n) => disturb(n).catch(() => undefined));
  const crowds = [
    startFlood(isQuick ? 32 : 128, () => placeCall(url, campaignId, key)),
    startFlood(16, () => ask('POST', onDemand(url, campaignId), { key: makeKeyValue(randomBytes), body: {} })),
    startFlood(8, (n) => ask('GET', search, { cookie: searchers[n % 4] ?? '' })),
    startFlood(isQuick ? 8 : 200, () => ask('GET', session, { cookie: teammate })),
    startCrowd(trial, 1, async () => {
      const { status } = await ask('GET', session, { cookie });
      if (status !== 200) ledger.fail(`another user of the console got ${status}`);
      await pause(200);
    }),
  ];
  await pause(duration);
  const counts = await Promise.all(crowds.map((crowd) => crowd.stop()));
  ledger.note(`${counts.reduce((sum, count) => sum + count)} requests from others`);
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
    while ([429, 503].includes(answer.status) && performance.now() - since < patience) {
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

describeAttacks(...attacks);
