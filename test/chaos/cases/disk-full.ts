import { setTimeout as pause } from 'node:timers/promises';
import { startCluster } from '../cluster.ts';
import { eventually, expectPlacing, expectReady, openScene, stopAndCompare } from '../environment.ts';
import { smallDisk } from '../faults.ts';
import { startLoad } from '../load.ts';
import type { Case } from '../run.ts';

/** Long enough to fill what SQLite and PostgreSQL have set aside for their logs. */
const variables = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`v${n}`, 'x'.repeat(1_000)]));

/** The disk is full, and then it is not. */
export const diskFull: Case = {
  name: 'disk-full',
  title: 'the disk full',
  quickDatabases: [],
  async attack(trial) {
    const disk = smallDisk(trial, trial.kind === 'sqlite' ? 48 : 192);
    const cluster = trial.kind === 'postgres' ? await startCluster(trial, disk.directory) : null;
    const scene = await openScene(trial, { database: cluster?.url() ?? `sqlite:${disk.directory}/callkey.db` });
    for (let round = 0; round < (trial.isQuick ? 1 : 3); round++) {
      if (round > 0) await scene.start();
      const load = startLoad(scene, { extra: { variables } });
      await load.more(100);
      disk.fill();
      const isStuck = await eventually(() => hasStopped(load), 30_000);
      if (!isStuck) scene.ledger.note('the disk was never full enough to stop it');
      else await expectReady(scene, false, 'while the disk is full');
      await pause(2_000);
      disk.free();
      if (cluster && !(await eventually(() => cluster.query('SELECT 1').then(Boolean, () => false), 3_000)))
        await cluster.control('restart', '-m', 'immediate');
      await expectReady(scene, true, 'although the disk has room again');
      await expectPlacing(scene, 'although the disk has room again');
      await load.stop();
      await stopAndCompare(scene, round % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
    }
  },
};

/** Nothing is acknowledged for a second. */
async function hasStopped(load: { acknowledged(): number }): Promise<boolean> {
  const before = load.acknowledged();
  await pause(1_000);
  return load.acknowledged() === before;
}
