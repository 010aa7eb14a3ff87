import { setTimeout as pause } from 'node:timers/promises';
import { startCluster } from '../cluster.ts';
import { eventually, expectPlacing, expectReady, openScene, stopAndCompare } from '../environment.ts';
import { failSyncs } from '../faults.ts';
import { startLoad } from '../load.ts';
import type { Case } from '../run.ts';

/** Each fsync fails for some seconds, as on a disk that is dying: what it was for must not be acknowledged. */
export const fsync: Case = {
  name: 'fsync',
  title: 'fsync failing',
  async attack(trial) {
    const cluster = trial.kind === 'postgres' ? await startCluster(trial) : null;
    const scene = await openScene(trial, cluster ? { database: cluster.url() } : {});
    for (let round = 0; round < (trial.isQuick ? 1 : 3); round++) {
      if (round > 0) await scene.start();
      const load = startLoad(scene);
      await load.more(100);
      const { pid = 0 } = scene.core().child;
      const failing = await failSyncs(trial, cluster ? cluster.processes() : [pid]);
      await pause(500);
      const before = scene.ledger.placed.size;
      await expectReady(scene, false, 'while no write reaches the disk');
      await pause(trial.isQuick ? 1_000 : 4_000);
      const meanwhile = scene.ledger.placed.size - before;
      if (meanwhile > 0) scene.ledger.fail(`${meanwhile} calls were acknowledged while no write reached the disk`);
      await failing.stop();
      if (cluster && !(await eventually(() => cluster.query('SELECT 1').then(Boolean, () => false), 3_000)))
        await cluster.control('restart', '-m', 'immediate');
      await expectReady(scene, true, 'although writes reach the disk again');
      await expectPlacing(scene, 'although writes reach the disk again');
      await load.more(100);
      await load.stop();
      await stopAndCompare(scene, round % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
    }
  },
};
