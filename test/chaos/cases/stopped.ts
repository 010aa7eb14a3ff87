import { setTimeout as pause } from 'node:timers/promises';
import { openDirect } from '../../support/tenants.ts';
import { openScene, type Scene, stopAndCompare, waitForNone } from '../environment.ts';
import { leaseClock } from '../faults.ts';
import { startLoad } from '../load.ts';
import { takesAfter } from '../provider.ts';
import type { Case } from '../run.ts';

/** A dialer that is stopped beyond its lease with hand-offs under way, and goes on. */
export const stopped: Case = {
  name: 'stopped',
  title: 'a dialer stopped beyond its lease',
  quickDatabases: ['postgres'],
  async attack(trial) {
    const leases = leaseClock(trial);
    const scene = await openScene(trial, { manner: takesAfter(300), environment: { ...leases.environment, DIALER_CONCURRENCY: '5' } });
    const one = scene.core();
    const count = trial.calls(100, 500);
    const load = startLoad(scene, { every: 1, stopAt: count });
    await load.more(count, 30_000);
    // Nobody waits for an answer of the one that is stopped.
    await load.stop();
    await stopBetweenWrites(scene, one.child.pid ?? 0);
    const other = await scene.start({ DIALER_CONCURRENCY: '10' });
    await leases.passLease();
    process.kill(one.child.pid ?? 0, 'SIGCONT');
    const after = startLoad(scene, { stopAt: 30, url: (n) => (n % 2 ? one.url : other.url) });
    if (!(await after.more(30))) trial.ledger.fail('nothing can be placed after the dialer goes on');
    await after.stop();
    const left = await waitForNone(scene, ['queued'], 30_000);
    if (left > 0) trial.ledger.fail(`${left} calls were never dialed`);
    await stopAndCompare(scene);
  },
};

/** A process that is stopped in the middle of a SQLite transaction keeps the file to itself: it is stopped at another moment. */
async function stopBetweenWrites(scene: Scene, pid: number): Promise<void> {
  const direct = await openDirect(scene.database);
  scene.trial.cleanup.defer(() => direct.close());
  for (;;) {
    process.kill(pid, 'SIGSTOP');
    const isFree = await direct.storage.database.write.transaction(async () => true).catch(() => false);
    if (isFree) return;
    process.kill(pid, 'SIGCONT');
    await pause(7);
  }
}
