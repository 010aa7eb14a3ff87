import { setTimeout as pause } from 'node:timers/promises';
import { ask } from '../support/http.ts';
import { createKey } from '../support/tenants.ts';
import { describeAttacks, isQuick, type Trial } from './attack.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { failSyncs, smallDisk } from './faults.ts';
import { type Load, startLoad } from './load.ts';
import { eventually, expectPlacing, expectReady, openScene, type Scene } from './scene.ts';

/** Long enough to fill the space that SQLite and PostgreSQL have reserved for their logs. */
const variables = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`v${n}`, 'x'.repeat(1_000)]));

/**
 * Under load, the disk fails for a while, several times. The core is killed after one failure, and asked to stop after the next.
 *
 * @param prepare returns the folder for the database, if it needs a special one, and a function that makes the disk fail and repairs it
 */
const outage = (
  title: string,
  prepare: (trial: Trial) => { directory?: string; extra?: object; fail(scene: Scene, load: Load, cluster?: Cluster): Promise<void> },
) =>
  async function attack(trial: Trial): Promise<void> {
    const { directory, extra = {}, fail } = prepare(trial);
    const cluster = trial.kind === 'postgres' ? await startCluster(trial, directory) : undefined;
    const scene = await openScene(trial, { database: cluster?.url ?? (directory && `sqlite:${directory}/callkey.db`) });
    for (let round = 0; round < (isQuick ? 1 : 3); round++) {
      if (round > 0) await scene.start();
      const load = startLoad(scene, { extra });
      await load.more(100);
      await fail(scene, load, cluster);
      // PostgreSQL may have given up.
      await cluster?.revive();
      await expectPlacing(scene, `after ${title}`);
      await revokeAndUse(scene);
      await load.more(100);
      await load.stop();
      await scene.stopAndCompare(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
    }
  };

const diskFull = outage('the full disk', (trial) => {
  const disk = smallDisk(trial, trial.kind === 'sqlite' ? 48 : 192);
  return {
    ...{ directory: disk.directory, extra: { variables } },
    async fail(scene, load) {
      disk.fill();
      if (await eventually(() => hasStopped(load), 30_000)) await expectReady(scene, false, 'while the disk is full');
      else scene.ledger.note('the disk was never full enough to stop it');
      await pause(2_000);
      disk.free();
    },
  };
});

const failingSync = outage('failing fsyncs', (trial) => ({
  async fail(scene, _load, cluster) {
    const { ledger } = scene;
    const stop = await failSyncs(trial, cluster?.processes() ?? [scene.core().child.pid ?? 0]);
    await pause(500);
    const before = ledger.placed.size;
    await expectReady(scene, false, 'while no write reaches the disk');
    await pause(isQuick ? 1_000 : 4_000);
    if (ledger.placed.size > before) ledger.fail(`${ledger.placed.size - before} calls were acknowledged while no write reached the disk`);
    await stop();
  },
}));

/** Whether no call is acknowledged within a second. */
async function hasStopped(load: Load): Promise<boolean> {
  const before = load.acknowledged();
  await pause(1_000);
  return load.acknowledged() === before;
}

/** Checks that a key can be revoked, and is then refused. */
async function revokeAndUse(scene: Scene): Promise<void> {
  const { url } = scene.core();
  const { ledger, cookie } = scene;
  const created = await createKey(url, cookie).catch(() => null);
  if (!created) return ledger.fail('no key can be created afterwards');
  const { status } = await ask('DELETE', `${url}/console/api-keys/${created.id}`, { cookie });
  if (status !== 204) return ledger.fail(`revoking a key got ${status} afterwards`);
  ledger.revoke(created.keyValue);
  await scene.place(`revoked-${created.id}`, { key: created.keyValue });
}

describeAttacks(
  { name: 'disk-full', title: 'the disk full', quickOn: null, run: diskFull },
  { name: 'fsync', title: 'fsync failing', run: failingSync },
);
