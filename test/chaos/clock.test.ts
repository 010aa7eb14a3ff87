import { setTimeout as pause } from 'node:timers/promises';
import { throttleLimits } from '../../core/domain/sign-in/throttle.ts';
import { ask } from '../support/http.ts';
import { signIn } from '../support/tenants.ts';
import { describeAttacks, isQuick } from './attack.ts';
import { settableClock } from './faults.ts';
import { startLoad } from './load.ts';
import { expectDialed, openScene, waitForNone } from './scene.ts';

const hour = 3_600;
const days = 24 * hour;
const steps = [hour, 0, -hour, 400 * days, hour, 400 * days, -400 * days, 400 * days];

/** The clock is changed back and forth, by an hour and by more than a year. */
describeAttacks({
  name: 'clock',
  title: 'clock changes',
  async run(trial) {
    const time = settableClock();
    const scene = await openScene(trial, { environment: time.environment });
    const { ledger } = scene;
    const session = `${scene.core().url}/console/session`;
    const load = startLoad(scene, { placers: 4 });
    for (const step of isQuick ? [hour, -hour, 400 * days] : steps) {
      time.stepTo(step);
      await load.more(30);
      await pause(isQuick ? 500 : 3_000);
    }
    // The last change left the clock in the far future.
    const cookie = await signIn(scene.core().url, 'tom@example.com');
    const attempt = () => ask('POST', session, { body: { email: 'sue@example.com', password: 'wrong' } });
    let tries = 2 * throttleLimits.pair.max;
    while ((await attempt()).status !== 429) if (--tries === 0) throw new Error('wrong passwords were never throttled');
    await load.stop();

    time.stepTo(0);
    if ((await ask('GET', session, { cookie })).status === 200) ledger.fail('a session that begins in 400 days is accepted');
    // A throttled user must not wait for longer than the throttle's window, even if the clock was wrong when the wait began.
    const { status, headers } = await attempt();
    const wait = Number(headers['retry-after'] ?? 0);
    if (status === 429 && wait > throttleLimits.account.window.as('seconds')) ledger.fail(`a throttled sign-in has to wait for ${wait} s`);
    await expectDialed(scene, await scene.place('after-the-steps'), 15_000, 'after the steps');
    // Calls that were placed while the clock was ahead are dialed now, not when the clock gets there again. Calls that were due 400 days
    // ago and weren't dialed before the clock's next change are too old to be dialed, so the hourly sweep ends them.
    await waitForNone(scene, ['queued'], 60_000, Date.now() - 24 * hour * 1_000);
    await scene.stopAndCompare();
  },
});
