import type { ChildProcess } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { dialingLimits } from '../../core/domain/calls/dialing.ts';
import { clockAhead } from '../support/core.ts';
import { insertCalls, openDirect, signIn, somePhone } from '../support/tenants.ts';
import { until } from '../support/until.ts';
import {
  type Attack,
  type Behavior,
  describeAttacks,
  isQuick,
  openScene,
  reportCompleted,
  type Scene,
  takes,
  waitForNone,
} from './attack.ts';

/** In ms. */
const beyondLease = dialingLimits.lease.toMillis() + 3_000;

/** Adds calls to the queue, as if they had been placed. */
async function queueCalls({ database, tenants, ledger }: Scene, count: number): Promise<void> {
  await using direct = await openDirect(database);
  const ids = Array.from({ length: count }, (_, n) => `paced-${String(n).padStart(6, '0')}`);
  for (const id of ids) ledger.placed.set(id, id);
  await insertCalls(direct, tenants, ids, { phone: somePhone() });
}

/**
 * In ms. A core that waited for the processor makes the calls after it look too early. Two cores that each kept their own pace would be
 * early by half of the trial. The short version shares the processors with other tests, so it only notes how early calls were.
 */
const jitter = isQuick ? Number.POSITIVE_INFINITY : 1_000;

/** Two cores keep one pace and one number of live calls, even if one of them is killed and replaced. */
const paced: Attack['run'] = async (trial) => {
  const [perSecond, liveCalls, count] = isQuick ? [10, 4, 80] : [50, 4, 10_000];
  const clock = clockAhead();
  const environment = { DIALER_PER_SECOND: String(perSecond), DIALER_LIVE_CALLS: String(liveCalls), ...clock.environment };
  const live = new Set<string>();
  const scene = await openScene(trial, { environment });
  const { ledger, provider } = scene;
  const cores = [scene.core(), await scene.start()];
  let [most, debt, earliest, calls] = [0, Number.NEGATIVE_INFINITY, 0, 0];
  provider.onTaken = async (handoffId) => {
    const at = performance.now();
    live.add(handoffId);
    most = Math.max(most, live.size);
    // The n-th and m-th calls are too close if (m - n) > perSecond × (time between them).
    const due = (at * perSecond) / 1_000 - calls++;
    debt = Math.max(debt, due);
    earliest = Math.max(earliest, ((debt - due) * 1_000) / perSecond);
    await pause(((calls % 7) + 1) * 5);
    live.delete(handoffId);
    for (let n = 0; !trial.cleanup.disposed && !(await reportCompleted(cores[n % 2]?.url ?? '', handoffId)); n++) await pause(50);
  };
  const startedAt = performance.now();
  await queueCalls(scene, count);
  await until(() => provider.called() > count / 3, 300_000);
  await cores[1]?.stop('SIGKILL');
  // The calls that it was handing off are live until their leases end.
  clock.setAhead(beyondLease);
  cores[1] = await scene.start();
  await until(() => provider.called() >= count - liveCalls, 600_000);
  const rate = (provider.called() * 1_000) / (performance.now() - startedAt);
  clock.setAhead(2 * beyondLease);
  await waitForNone(scene, ['queued', 'dialing'], 60_000);
  ledger.note(
    `${provider.called()} of ${count} calls, ${rate.toFixed(1)} instead of ${perSecond} per second, at most ${most} live, ` +
      `at most ${earliest.toFixed(1)} ms too early`,
  );
  if (most > liveCalls) ledger.fail(`${most} calls were live`);
  if (earliest > jitter) ledger.fail(`calls left ${earliest} ms too early`);
  await scene.stopAndCompare();
};

/** Accepts calls after up to 20 ms, so that hand-offs are always under way. */
const takesSoon: Behavior = (turn, response) => {
  setTimeout(() => takes(turn, response), turn % 20);
  return true;
};

/** Freezes a core, but not while it has locked the database. */
async function freeze({ database }: Scene, { child }: { child: ChildProcess }): Promise<void> {
  await using direct = await openDirect(database);
  for (;;) {
    child.kill('SIGSTOP');
    const isFree = await direct.storage.database.write.transaction(async () => true).catch(() => false);
    if (isFree) return;
    child.kill('SIGCONT');
    await pause(7);
  }
}

/**
 * Dialing is stopped and resumed again and again, while two cores dial, and are killed, or hang until the stop's response. No hand-off may
 * begin after it.
 */
const stops: Attack['run'] = async (trial) => {
  const rounds = isQuick ? 15 : 500;
  const clock = clockAhead();
  const scene = await openScene(trial, { behavior: takesSoon, environment: { DIALER_CONCURRENCY: '5', ...clock.environment } });
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
    const stopped = await scene.change('POST', `${asked}/console/stops`, { cookie, body: scopes[(round >> 2) % 2] ?? {} });
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
    const resumed = await scene.change('DELETE', `${url()}/console/stops/${id}`, { cookie });
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
  { name: 'paced', title: 'a pace and a number of live calls on two cores, one of which is killed', quickOn: 'postgres', run: paced },
  { name: 'stops', title: 'dialing stopped and resumed on two cores that are killed', quickOn: 'postgres', run: stops },
);
