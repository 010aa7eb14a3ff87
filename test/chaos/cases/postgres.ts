import { setTimeout as pause } from 'node:timers/promises';
import { type Cluster, startCluster } from '../cluster.ts';
import { eventually, expectPlacing, expectReady, openScene, type Scene, stopAndCompare } from '../environment.ts';
import { type Load, startLoad } from '../load.ts';
import type { Case } from '../run.ts';

/** A fault of the server during load, some times over; the core is killed after one, and asked to stop after the next. */
function faultOfServer(name: string, title: string, fault: (cluster: Cluster, scene: Scene, load: Load) => Promise<void>): Case {
  return {
    name,
    title,
    databases: ['postgres'],
    async attack(trial) {
      const cluster = await startCluster(trial);
      const scene = await openScene(trial, { database: cluster.url() });
      for (let round = 0; round < (trial.isQuick ? 1 : 3); round++) {
        if (round > 0) await scene.start();
        const load = startLoad(scene);
        await load.more(100);
        await fault(cluster, scene, load);
        await expectReady(scene, true, 'although the server is back');
        await expectPlacing(scene, 'although the server is back');
        await load.more(100);
        await load.stop();
        await stopAndCompare(scene, round % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
      }
    },
  };
}

export const restart = faultOfServer('restart', 'PostgreSQL restarted at once', async (cluster, { trial }, load) => {
  for (let times = 0; times < (trial.isQuick ? 1 : 3); times++) {
    await cluster.control('restart', '-m', 'immediate');
    await load.more(50);
  }
});

export const freeze: Case = {
  ...faultOfServer('freeze', 'PostgreSQL frozen, then going on', async (cluster, scene) => {
    cluster.signal('SIGSTOP');
    await Promise.all([expectReady(scene, false, 'while the server is frozen'), pause(14_000)]);
    cluster.signal('SIGCONT');
  }),
  quickDatabases: [],
};

export const terminate = faultOfServer('terminate', 'sessions terminated again and again', async (cluster, { trial }, load) => {
  const end = performance.now() + (trial.isQuick ? 2_000 : 10_000);
  while (performance.now() < end) {
    await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'callkey'`);
    await pause(50);
  }
  if (!(await eventually(() => load.more(1), 5_000))) throw new Error('nothing was placed after the sessions were terminated');
});
