import { setTimeout as pause } from 'node:timers/promises';
import { throttleLimits } from '../../../core/domain/sign-in/throttle.ts';
import { ask } from '../../support/http.ts';
import { openDirect, signIn } from '../../support/tenants.ts';
import { callBody, eventually, openScene, type Scene, stopAndCompare } from '../environment.ts';
import { settableClock } from '../faults.ts';
import { startLoad } from '../load.ts';
import type { Case } from '../run.ts';

const hour = 3_600;
const days = 24 * hour;

/** The clock steps, back and forth, by an hour and by more than a year. */
export const clock: Case = {
  name: 'clock',
  title: 'the clock stepped',
  quickDatabases: ['sqlite'],
  async attack(trial) {
    const time = settableClock();
    const scene = await openScene(trial, { environment: time.environment });
    const load = startLoad(scene, { placers: 4 });
    for (const step of trial.isQuick
      ? [hour, -hour, 400 * days]
      : [hour, 0, -hour, 400 * days, hour, 400 * days, -400 * days, 400 * days]) {
      time.stepTo(step);
      await load.more(30);
      await pause(trial.isQuick ? 500 : 3_000);
    }
    // In the far future, as the last step left it.
    const cookie = await signIn(scene.core().url, 'tom@example.com');
    await beThrottled(scene);
    await load.stop();
    time.stepTo(0);
    await checkSession(scene, cookie);
    await checkThrottle(scene);
    await checkDialing(scene);
    await stopAndCompare(scene);
  },
};

async function attempt(scene: Scene) {
  return ask('POST', `${scene.core().url}/console/session`, { body: { email: 'sue@example.com', password: 'wrong' } });
}

async function beThrottled(scene: Scene): Promise<void> {
  for (let tries = 0; tries < 2 * throttleLimits.pair.most; tries++) if ((await attempt(scene)).status === 429) return;
  scene.ledger.fail('wrong passwords were never throttled');
}

/** A wait is never longer than the longest window, whatever the clock was when it began. */
async function checkThrottle(scene: Scene): Promise<void> {
  const { status, headers } = await attempt(scene);
  const wait = Number(headers['retry-after'] ?? 0);
  if (status === 429 && wait > throttleLimits.account.window.as('seconds'))
    scene.ledger.fail(`a throttled sign-in has to wait for ${wait} s`);
}

async function checkSession(scene: Scene, cookie: string): Promise<void> {
  const { status } = await ask('GET', `${scene.core().url}/console/session`, { cookie });
  if (status === 200) scene.ledger.fail('a session that begins in 400 days is accepted');
}

/** A call placed now is dialed now, and calls placed while the clock was ahead do not wait for that time. */
async function checkDialing(scene: Scene): Promise<void> {
  const { contactId } = await scene.ledger.place(scene.core().url, scene.campaignId, scene.key, callBody('after-the-steps'));
  const isDialed = await eventually(() => contactId !== null && scene.provider.calls.of(contactId) > 0, 15_000);
  if (!isDialed) scene.ledger.fail('a call that was placed after the steps is not dialed');
  const direct = await openDirect(scene.database);
  scene.trial.cleanup.defer(() => direct.close());
  // Those that were due 400 days ago, and weren't dialed before the next step, may not be dialed now. The sweep of each hour ends them.
  const waiting: () => Promise<string[]> = () =>
    direct.storage.database.read('calls').where({ state: 'queued' }).where('due_at', '>', dayAgo()).pluck('contact_id');
  if (!(await eventually(async () => (await waiting()).length === 0, 60_000)))
    scene.ledger.fail(`${(await waiting()).length} calls are left waiting for a time that the clock was ahead to`);
}

const dayAgo = () => Date.now() - days * 1_000;
