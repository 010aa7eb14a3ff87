import { setTimeout as pause } from 'node:timers/promises';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { clockAhead } from '../support/core.ts';
import { ask, untilServed } from '../support/http.ts';
import { signIn } from '../support/tenants.ts';
import {
  type Attack,
  type Behavior,
  describeAttacks,
  freeze,
  isQuick,
  openScene,
  reportCompleted,
  startCrowd,
  startLoad,
  takes,
  waitForNone,
} from './attack.ts';

/** Accepts calls after a delay, so that hand-offs are always under way. */
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
const killed: Attack['run'] = async (trial) => {
  const clock = clockAhead();
  const environment = { DIALER_CONCURRENCY: '50', ...clock.environment };
  const scene = await openScene(trial, { environment, behavior: failsAndDrops });
  scene.provider.onTaken = async (handoffId) => {
    // So that some calls still wait for their outcome when the core is killed.
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
  await freeze(scene, one);
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

/**
 * Dialing is stopped and resumed again and again, while two cores dial, and are killed, or hang until the stop's response. No hand-off may
 * begin after it.
 */
const stops: Attack['run'] = async (trial) => {
  const rounds = isQuick ? 15 : 500;
  const clock = clockAhead();
  const scene = await openScene(trial, { behavior: takesAfter(10), environment: { DIALER_CONCURRENCY: '5', ...clock.environment } });
  const { ledger, provider, tenants } = scene;
  const cores = [scene.core(), await scene.start()];
  // A single user can't change that much in an hour.
  const users = await Promise.all(['ada', 'tom', 'pat', 'tia'].map((name) => signIn(scene.core().url, `${name}@example.com`)));
  const scopes = [
    { scope: 'account', id: tenants.account.id },
    { scope: 'campaign', id: tenants.campaign.id },
  ];
  let [late, kills, hangs, placed, slowest] = [0, 0, 0, 0, 0];
  for (let round = 0; round < rounds; round++) {
    const url = () => cores[Math.floor(Math.random() * 2)]?.url ?? '';
    await Promise.all(Array.from({ length: 24 }, () => scene.place(`stop-${placed++}`, { url: url() })));
    await pause(Math.random() * 40);
    // Together, the kills must not set the clocks further ahead than cores accept.
    const isKill = round % 70 === 12;
    const hung = round % 35 === 30 ? cores[round % 2] : undefined;
    const killed = Math.floor(Math.random() * 2);
    const survivor = cores[1 - killed]?.url ?? '';
    // Half of the kills come during the stop, which then waits for the calls that the killed core was handing off.
    const killing = isKill ? pause(round % 140 === 12 ? 5 : 0).then(() => cores[killed]?.stop('SIGKILL')) : undefined;
    if (isKill && round % 140 !== 12) {
      await killing;
      clock.setAhead(++kills * beyondLease);
    } else if (isKill) kills++;
    const cookie = users[round % users.length] ?? scene.cookie;
    if (hung) await freeze(scene, hung);
    const asked = isKill ? survivor : hung ? (cores[1 - (round % 2)]?.url ?? '') : url();
    const askedAt = performance.now();
    const stopped = await ask('POST', `${asked}/console/stops`, { cookie, body: scopes[(round >> 2) % 2] ?? {} });
    const known = provider.handOffs();
    slowest = Math.max(slowest, performance.now() - askedAt);
    if (stopped.status !== 201) ledger.fail(`stopping got ${stopped.status}: ${stopped.text}`);
    await killing;
    hung?.child.kill('SIGCONT');
    hangs += hung ? 1 : 0;
    await pause(isQuick ? 150 : 60);
    late += provider.handOffs() - known;
    if (isKill) {
      clock.setAhead(kills * beyondLease);
      cores[killed] = await scene.start();
      await pause(200);
      late += provider.handOffs() - known;
    }
    const { id } = Object(stopped.json).stop ?? {};
    const resumed = await ask('DELETE', `${url()}/console/stops/${id}`, { cookie });
    if (resumed.status !== 204) ledger.fail(`resuming got ${resumed.status}`);
  }
  if (late > 0) ledger.fail(`${late} hand-offs began after a stop's response`);
  clock.setAhead((kills + 1) * beyondLease);
  await waitForNone(scene, ['queued'], isQuick ? 60_000 : 600_000);
  const states = Map.groupBy(await scene.stopAndCompare(), ({ state }) => state);
  ledger.note(
    `${rounds} stops, ${kills} kills, ${hangs} hangs, ${provider.handOffs()} hand-offs, ${late} of them after a stop's response, the slowest response after ` +
      `${Math.round(slowest)} ms; ${[...states].map(([state, calls]) => `${calls.length} ${state}`).join(', ')}`,
  );
};

describeAttacks(
  { name: 'kills', title: 'repeated kills', quickOn: 'postgres', run: killed },
  { name: 'races', title: 'cancels racing with two dialers', quickOn: 'postgres', run: races },
  { name: 'stopped', title: 'a dialer stopped for longer than its lease', quickOn: 'postgres', run: stopped },
  { name: 'stops', title: 'dialing stopped and resumed on two cores that are killed', quickOn: 'postgres', run: stops },
);
