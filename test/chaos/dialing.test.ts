import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { clockAhead } from '../support/core.ts';
import { untilServed } from '../support/http.ts';
import { createKey, openDirect, signIn } from '../support/tenants.ts';
import { until } from '../support/until.ts';
import {
  type Attack,
  type Behavior,
  callBody,
  describeAttacks,
  expectDialed,
  isQuick,
  listCalls,
  openScene,
  readPeakMemory,
  reportCompleted,
  startCrowd,
  startLoad,
  takes,
  waitForNone,
} from './attack.ts';

/** Accepts calls after a delay, so that there are always queued calls and hand-offs in progress. */
const takesAfter =
  (ms: number): Behavior =>
  (turn, response) => {
    setTimeout(() => takes(turn, response), ms);
    return true;
  };

/** Refuses every fifth call temporarily, and accepts every twentieth without responding. */
const failsAndDrops: Behavior = (turn, response) => {
  if (turn % 20 === 1) response.destroy();
  else response.writeHead(turn % 5 === 0 ? 503 : 202).end();
  return turn % 5 !== 0;
};

/** In ms. */
const beyondLease = dialingLimits.lease.toMillis() + 3_000;

/** Uses a provider that fails and drops responses, and kills the core again and again. Each call must end exactly once. */
const killed = (deduplicates: boolean): Attack['run'] =>
  async function attack(trial) {
    const clock = clockAhead();
    const environment = { DIALER_CONCURRENCY: '50', ...clock.environment };
    const scene = await openScene(trial, { environment, behavior: failsAndDrops, deduplicates });
    scene.provider.onTaken = async (handoffId) => {
      // Reports the outcome only after the core has repeated a hand-off whose response was lost: an earlier outcome would end the call
      // first.
      await pause(1_500);
      while (!trial.cleanup.disposed && !(await reportCompleted(scene.core().url, handoffId))) await pause(200);
    };
    const count = isQuick ? 150 : 2_000;
    const kills = isQuick ? 2 : 20;
    const load = startLoad(scene, { every: 10, stopAt: count });
    for (let kill = 1; kill <= kills; kill++) {
      await load.more(Math.floor(count / (kills + 1)), 60_000);
      await scene.stop('SIGKILL');
      await scene.start();
    }
    await load.more(count, 60_000);
    await load.stop();
    // Calls that a killed core was handing off wait until their lease ends; calls whose hand-off failed wait for their next attempt.
    clock.setAhead(beyondLease);
    await pause(3_000);
    await waitForNone(scene, ['queued', 'dialing'], isQuick ? 30_000 : 120_000);
    const states = Map.groupBy(await scene.stopAndCompare(), ({ state }) => state);
    trial.ledger.note(`${kills} kills: ${[...states].map(([state, calls]) => `${calls.length} ${state}`).join(', ')}`);
  };

/** A dialer is stopped for longer than its lease during hand-offs, and then continues. */
const stopped: Attack['run'] = async (trial) => {
  const clock = clockAhead();
  const scene = await openScene(trial, { behavior: takesAfter(300), environment: { ...clock.environment, DIALER_CONCURRENCY: '5' } });
  const one = scene.core();
  const count = isQuick ? 100 : 500;
  const load = startLoad(scene, { every: 1, stopAt: count });
  await load.more(count, 30_000);
  // No client waits for a response from the stopped process.
  await load.stop();
  const direct = await openDirect(scene.database);
  // A process that is stopped during a SQLite transaction keeps the file locked, so it's stopped at another moment.
  const isFree = () =>
    direct.storage.database.write
      .transaction(async () => true)
      .catch(() => {
        one.child.kill('SIGCONT');
        return pause(7, false);
      });
  do one.child.kill('SIGSTOP');
  while (!(await isFree()));
  await direct.close();
  const other = await scene.start({ DIALER_CONCURRENCY: '10' });
  // The long version waits for the end of the lease in real time, so that the stopped process's timers are also due when it continues.
  if (isQuick) clock.setAhead(beyondLease);
  await pause(isQuick ? 3_000 : beyondLease);
  one.child.kill('SIGCONT');
  const after = startLoad(scene, { stopAt: 30, url: (n) => (n % 2 ? one : other).url });
  if (!(await after.more(30))) trial.ledger.fail('nothing can be placed after the dialer continues');
  await after.stop();
  await waitForNone(scene, ['queued'], 30_000);
  await scene.stopAndCompare();
};

/** Cancels compete with two dialers: each call is either cancelled or handed off, never both and never neither. */
const races: Attack['run'] = async (trial) => {
  const scene = await openScene(trial);
  const { ledger, provider } = scene;
  const cores = [scene.core(), await scene.start()] as const;
  const dialed = new Set<string>();
  const race = async (n: number) => {
    const { contactId } = await untilServed(() => scene.place(`race-${n}`, { url: cores[n % 2 ? 0 : 1].url }));
    const { status } = await untilServed(() => scene.cancel(`race-${n}`, { url: cores[n % 3 ? 0 : 1].url }));
    if (status === 409 && contactId !== null) dialed.add(contactId);
    else if (status !== 200) ledger.fail(`a cancel got ${status}`);
  };
  await startCrowd(trial, 32, race, isQuick ? 200 : 5_000).ended();
  const areDialed = () => [...dialed].every((contactId) => provider.hasCalled(contactId));
  await ledger.expect(areDialed, 30_000, 'some calls are neither cancelled nor dialed');
  ledger.note(`${ledger.cancelled.size} won by cancel, ${dialed.size} by the dialer`);
  await scene.stopAndCompare();
};

/** One account floods the dialer. Another account's single calls must not wait for the flood to end. */
const flood: Attack['run'] = async (trial) => {
  const scene = await openScene(trial, { behavior: takesAfter(50) });
  const { ledger, provider, tenants } = scene;
  const { url } = scene.core();
  const { keyValue: key } = await createKey(url, await signIn(url, 'oda@example.com'));
  const flooding = startCrowd(trial, 64, (n) => scene.place(`flood-${n}`), isQuick ? 600 : 8_000);
  await until(() => provider.called() >= 50, 20_000);
  const waits: number[] = [];
  for (let n = 0; n < (isQuick ? 5 : 20); n++) {
    const reply = await scene.place(`single-${n}`, { key, campaignId: tenants.otherCampaign.id });
    const placedAt = performance.now();
    await expectDialed(scene, reply, 10_000, 'within 10 s beside the flood');
    waits.push(performance.now() - placedAt);
  }
  const queued = (await listCalls(scene.database)).filter(({ state }) => state === 'queued').length;
  await flooding.ended();
  ledger.note(`with ${queued} calls queued, single calls were handed off after ${Math.round(Math.max(...waits))} ms at most`);
  await pause(500);
  await scene.stopAndCompare();
};

/** Writes until the other side hangs up. */
function writeEndlessly(response: ServerResponse): void {
  while (!response.destroyed && response.write(Buffer.alloc(1 << 16, 'x')));
}

/** In MB. An idle core takes about 150. */
const memoryBound = 512;

const endWith = (text: string) => (response: ServerResponse) => response.socket?.end(text);
const huge = (status: number) => (response: ServerResponse) => {
  response.writeHead(status, { 'Content-Type': 'text/plain' }).on('drain', () => writeEndlessly(response));
  writeEndlessly(response);
};

/** Bad ways for a provider to respond. Except after a 503 or 429, it may have made the call. */
const misbehaviors: readonly ((response: ServerResponse) => unknown)[] = [
  // Responds only after a minute, when the core has stopped waiting.
  (response) => setTimeout(() => response.end(), 60_000).unref(),
  huge(200),
  huge(400),
  endWith('garbage\r\n\r\n'),
  endWith('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!'),
  endWith(`HTTP/1.1 202 Accepted\r\nX-Huge: ${'x'.repeat(1 << 18)}\r\n\r\n`),
  endWith(`${'HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n'.repeat(50)}HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n`),
  (response) => response.writeHead(302, { Location: '/' }).end(),
  // Promises to keep the connection open, and then closes it immediately.
  (response) => response.writeHead(202, { Connection: 'keep-alive' }).end(() => response.socket?.destroy()),
  (response) => response.writeHead(503, { 'Retry-After': '1e9' }).end(),
  (response) => response.writeHead(429, { 'Retry-After': '-1' }).end(),
];

const misbehaves: Behavior = (turn, response) => {
  misbehaviors[turn % misbehaviors.length]?.(response);
  return ![503, 429].includes(response.statusCode);
};

/** A provider that misbehaves: no one may be called twice, calls are placed in time, and memory stays bounded. */
const hostile: Attack['run'] = async (trial) => {
  const scene = await openScene(trial, { behavior: misbehaves, environment: { DIALER_CONCURRENCY: '100' } });
  const { ledger, provider } = scene;
  const load = startLoad(scene, { every: 200 });
  await pause(isQuick ? 3_000 : 60_000);
  await load.stop();
  const max = readPeakMemory(scene.core());
  if (max > memoryBound) ledger.fail(`the core used ${max} MB`);
  provider.behavior = takes;
  await expectDialed(scene, await scene.place(callBody('after-it-all')), 30_000, 'although the provider works again');
  ledger.note(`${provider.handOffs()} hand-offs, ${max} MB at most`);
  await scene.stopAndCompare();
};

describeAttacks(
  { name: 'kills', title: "repeated kills and a provider that doesn't deduplicate", quickOn: 'postgres', run: killed(false) },
  { name: 'kills-deduplicated', title: 'repeated kills and a provider that deduplicates', quickOn: null, run: killed(true) },
  { name: 'races', title: 'cancels racing with two dialers', quickOn: 'postgres', run: races },
  { name: 'stopped', title: 'a dialer stopped for longer than its lease', quickOn: 'postgres', run: stopped },
  // Tests of storage and of the dialer cover these rules.
  { name: 'flood', title: 'one account flooding the queue that others use', quickOn: null, run: flood },
  { name: 'hostile', title: 'a hostile provider', quickOn: null, run: hostile },
);
