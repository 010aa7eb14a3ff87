// Attacks what the dialer promises, with real processes, on both databases, and prints what came of it:
//   npm run storm                        everything, some minutes
//   npm run storm -- --races 1000 --calls 500 --only races,kills
import { type ChildProcess, execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { sign } from '../core/contract/signature.ts';
import { type CoreProcess, spawnCore } from '../test/support/core.ts';
import { cleanUp, type DatabaseKind, databaseKinds, freshDatabase } from '../test/support/databases.ts';
import { ask, textAt } from '../test/support/http.ts';
import { type Beside, createKey, createWorld, onDemand, openBeside, placeCall, signIn, type World } from '../test/support/world.ts';

const { values } = parseArgs({
  options: {
    races: { type: 'string', default: '10000' },
    calls: { type: 'string', default: '5000' },
    only: { type: 'string', default: 'races,flood,kills,stopped' },
  },
});
const isWanted = (storm: string) => values.only.split(',').includes(storm);
const secret = 'a secret that core and provider share';
const say = (line: string) => process.stdout.write(`${line}\n`);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

type Scene = {
  database: string;
  beside: Beside;
  world: World;
  start(environment?: Record<string, string>): Promise<CoreProcess>;
  receiver: Receiver;
};
type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** A provider that counts, by hand-off id, what it has taken and how often it was asked. */
async function startReceiver(chance: { fail: number; drop: number }) {
  const asked = new Map<string, number>();
  const answered = new Map<string, number>();
  const taken = new Map<string, string>();
  const arrivals = new Map<string, number>();
  let count = 0;
  let report: (handoffId: string) => void = () => undefined;
  const server = createServer(async (request, response) => {
    const { handoffId, contactId } = JSON.parse(await text(request));
    asked.set(handoffId, (asked.get(handoffId) ?? 0) + 1);
    const turn = ++count;
    if (chance.fail > 0 && turn % chance.fail === 0) {
      response.writeHead(503).end();
      return;
    }
    if (!arrivals.has(contactId)) arrivals.set(contactId, performance.now());
    const known = taken.get(handoffId);
    if (known !== undefined && known !== contactId) throw new Error(`The hand-off ${handoffId} came for two calls.`);
    taken.set(handoffId, contactId);
    answered.set(handoffId, (answered.get(handoffId) ?? 0) + 1);
    report(handoffId);
    if (chance.drop > 0 && turn % chance.drop === 0) response.destroy();
    else response.writeHead(202).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`,
    asked,
    answered,
    taken,
    arrivals,
    onTaken: (listener: (handoffId: string) => void) => {
      report = listener;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function scene(kind: DatabaseKind, chance = { fail: 0, drop: 0 }): Promise<Scene> {
  const database = await freshDatabase(kind);
  const beside = await openBeside(database);
  const receiver = await startReceiver(chance);
  const dialer = { DIALER: 'webhook', DIALER_URL: receiver.url, DIALER_SECRETS: secret };
  return {
    database,
    beside,
    receiver,
    world: await createWorld(beside.ports),
    start: (environment = {}) => spawnCore(database, { ...dialer, ...environment }),
  };
}

async function statesOf({ beside }: Scene): Promise<Record<string, number>> {
  const rows: { state: string; calls: number | string }[] = await beside.storage.database
    .read('calls')
    .select('state')
    .count({ calls: '*' })
    .groupBy('state');
  return Object.fromEntries(rows.map(({ state, calls }) => [state, Number(calls)]));
}

async function inParallel(count: number, width: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await work(next++);
    }),
  );
}

const body = (n: number) => ({ requestId: `r${n}`, contact: { phone: `+4930${String(n).padStart(8, '1')}` } });

/** Cancels against two dialers: each call is cancelled or handed off, never both, never neither. */
async function races(kind: DatabaseKind, count: number): Promise<void> {
  const stage = await scene(kind);
  const cores = [await stage.start(), await stage.start()];
  const [one, other] = cores;
  if (!one || !other) return;
  const { keyValue } = await createKey(one.url, await signIn(one.url, 'ada@example.com'));
  const cancelled = new Set<string>();
  const lost = new Set<string>();
  await inParallel(count, 32, async (n) => {
    const at = n % 2 ? one.url : other.url;
    const contactId = textAt(await placeCall(at, stage.world.campaign.id, keyValue, body(n)), 'contactId');
    const answer = await ask('DELETE', `${onDemand(n % 3 ? one.url : other.url, stage.world.campaign.id)}/${contactId}`, { key: keyValue });
    (answer.status === 200 ? cancelled : lost).add(contactId);
  });
  while (stage.receiver.taken.size < lost.size) await pause(50);
  await Promise.all(cores.map((core) => core.stop()));
  const called = new Set(stage.receiver.taken.values());
  const both = [...cancelled].filter((id) => called.has(id)).length;
  const neither = [...lost].filter((id) => !called.has(id)).length;
  const twice = [...stage.receiver.asked.values()].filter((times) => times > 1).length;
  say(
    `${kind}: ${count} races, ${cancelled.size} won by cancel, ${lost.size} by the dialer; both ${both}, neither ${neither}, handed off twice ${twice}`,
  );
  stage.receiver.close();
  await stage.beside.close();
}

/** A receiver that fails and drops answers, and a core that is killed again and again. */
async function kills(kind: DatabaseKind, count: number, deduplicates: boolean): Promise<void> {
  const stage = await scene(kind, { fail: 5, drop: 20 });
  const environment = { DIALER_DEDUPLICATES: String(deduplicates), DIALER_CONCURRENCY: '50' };
  let core = await stage.start(environment);
  const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
  const report = async (handoffId: string): Promise<void> => {
    const raw = JSON.stringify({ handoffId, state: 'completed' });
    for (;;) {
      const headers = { 'Callkey-Signature': sign(raw, secret, Math.floor(Date.now() / 1_000)) };
      const answer = await ask('POST', `${core.url}/dialer/outcomes`, { raw, headers }).catch(() => null);
      if (answer?.status === 204) return;
      await pause(100);
    }
  };
  stage.receiver.onTaken((handoffId) => void report(handoffId));

  let placed = 0;
  const placing = inParallel(count, 16, async (n) => {
    for (;;) {
      const answer = await placeCall(core.url, stage.world.campaign.id, keyValue, body(n)).catch(() => null);
      if (answer?.status === 202) break;
      await pause(20);
    }
    placed++;
  });
  for (let kill = 1; kill <= 20; kill++) {
    while (placed < Math.min(count, (count / 21) * kill)) await pause(5);
    await core.stop('SIGKILL');
    core = await stage.start(environment);
  }
  await placing;
  // What was under way in a killed core waits for its lease; what failed, for its next try.
  const isOpen = async () => {
    const states = await statesOf(stage);
    return (states['queued'] ?? 0) + (states['dialing'] ?? 0) > 0;
  };
  while (await isOpen()) await pause(500);
  await core.stop();
  const states = await statesOf(stage);
  const total = Object.values(states).reduce((sum, calls) => sum + calls, 0);
  const unlike = [...stage.receiver.taken].filter(([handoffId, contactId]) => handoffId !== contactId).length;
  const again = [...stage.receiver.answered.values()].filter((times) => times > 1).length;
  say(
    `${kind}, ${deduplicates ? 'a provider that de-duplicates' : 'one that does not'}: ${count} calls, 20 kills: ${JSON.stringify(states)}, ${total} in all; one id for two calls ${unlike}; taken more than once ${again}`,
  );
  stage.receiver.close();
  await stage.beside.close();
}

/** A dialer that is stopped beyond its lease, and goes on. */
async function stopped(kind: DatabaseKind): Promise<void> {
  const stage = await scene(kind);
  const one = await stage.start({ DIALER_CONCURRENCY: '5' });
  const other = await stage.start();
  const { keyValue } = await createKey(one.url, await signIn(one.url, 'ada@example.com'));
  const count = 300;
  const placing = inParallel(
    count,
    8,
    async (n) => void (await placeCall(one.url, stage.world.campaign.id, keyValue, body(n)).catch(() => null)),
  );
  while (stage.receiver.taken.size < 30) await pause(1);
  // A process that is stopped in the middle of a SQLite transaction keeps the file to itself: stop it at another moment.
  for (;;) {
    signal(one.child, 'SIGSTOP');
    const isFree = await stage.beside.storage.database.write.transaction(async () => true).catch(() => false);
    if (isFree) break;
    signal(one.child, 'SIGCONT');
    await pause(7);
  }
  // Longer than the lease of 30 seconds.
  await pause(33_000);
  signal(one.child, 'SIGCONT');
  await placing;
  await pause(5_000);
  await Promise.all([one.stop(), other.stop()]);
  const twice = [...stage.receiver.asked.values()].filter((times) => times > 1).length;
  say(`${kind}: a dialer stopped for 33 s and continued: ${JSON.stringify(await statesOf(stage))}, handed off twice ${twice}`);
  stage.receiver.close();
  await stage.beside.close();
}

function signal(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid !== undefined) process.kill(child.pid, name);
}

/** One account's flood, and another's single calls in the middle of it. */
async function flood(kind: DatabaseKind, count: number): Promise<void> {
  const stage = await scene(kind);
  const core = await stage.start();
  const { keyValue } = await createKey(core.url, await signIn(core.url, 'ada@example.com'));
  const other = await createKey(core.url, await signIn(core.url, 'oda@example.com'));
  const flooding = inParallel(count, 64, async (n) => void (await placeCall(core.url, stage.world.campaign.id, keyValue, body(n))));
  const waits: number[] = [];
  while (stage.receiver.taken.size < 100) await pause(5);
  for (let n = 0; n < 20; n++) {
    const contactId = textAt(await placeCall(core.url, stage.world.otherCampaign.id, other.keyValue, body(n)), 'contactId');
    const placedAt = performance.now();
    while (!stage.receiver.arrivals.has(contactId)) await pause(1);
    waits.push((stage.receiver.arrivals.get(contactId) ?? 0) - placedAt);
  }
  const queue = (await statesOf(stage))['queued'] ?? 0;
  await flooding;
  await core.stop();
  say(
    `${kind}: with ${queue} calls of one account queued, 20 single calls of another were handed off after ${Math.round(Math.max(...waits))} ms at the most`,
  );
  stage.receiver.close();
  await stage.beside.close();
}

say(execFileSync('uname', ['-srm'], { encoding: 'utf8' }).trim());
try {
  for (const kind of databaseKinds) {
    if (isWanted('races')) await races(kind, Number(values.races));
    if (isWanted('flood')) await flood(kind, Number(values.races));
    if (isWanted('kills')) await kills(kind, Number(values.calls), true);
    if (isWanted('kills')) await kills(kind, Number(values.calls), false);
    if (isWanted('stopped')) await stopped(kind);
  }
} finally {
  await cleanUp();
}
