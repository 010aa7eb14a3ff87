import { setTimeout as pause } from 'node:timers/promises';
import { dialingLimits } from '../../../core/domain/dialing.ts';
import { openBeside } from '../../../test/support/world.ts';
import { eventually, openScene, type Scene, stopAndCompare } from '../environment.ts';
import { settableClock } from '../faults.ts';
import { startLoad } from '../load.ts';
import type { Case } from '../run.ts';

/** A dialer that is stopped beyond its lease, and goes on. The short version steps the clock over the lease instead of waiting. */
export const stopped: Case = {
  name: 'stopped',
  title: 'a dialer stopped beyond its lease',
  async attack(trial) {
    const beyond = dialingLimits.lease.as('seconds') + 3;
    const time = trial.isQuick ? settableClock() : null;
    const environment = time?.environment ?? {};
    const scene = await openScene(trial, { environment: { ...environment, DIALER_CONCURRENCY: '5' } });
    const one = scene.core();
    const count = trial.calls(150, 600);
    const load = startLoad(scene, { every: 1, stopAt: count });
    await eventually(() => scene.provider.handOffs() >= 30, 20_000);
    await load.more(count, 30_000);
    await load.stop();
    const other = await scene.start({ DIALER_CONCURRENCY: '10' });
    await stopBetweenWrites(scene, one.child.pid ?? 0);
    time?.stepTo(beyond);
    await pause(time ? 3_000 : beyond * 1_000);
    process.kill(one.child.pid ?? 0, 'SIGCONT');
    const after = startLoad(scene, { stopAt: 30, url: (n) => (n % 2 ? one.url : other.url) });
    if (!(await after.more(30))) trial.ledger.fail('nothing can be placed after the dialer goes on');
    await after.stop();
    await pause(3_000);
    await stopAndCompare(scene);
  },
};

/** A process that is stopped in the middle of a SQLite transaction keeps the file to itself: it is stopped at another moment. */
async function stopBetweenWrites(scene: Scene, pid: number): Promise<void> {
  const beside = await openBeside(scene.database);
  scene.trial.cleanup.defer(() => beside.close());
  for (;;) {
    process.kill(pid, 'SIGSTOP');
    const isFree = await beside.storage.database.write.transaction(async () => true).catch(() => false);
    if (isFree) return;
    process.kill(pid, 'SIGCONT');
    await pause(7);
  }
}
