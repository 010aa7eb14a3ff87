import { setTimeout as pause } from 'node:timers/promises';
import { ask } from '../support/http.ts';
import { createKey, openDirect } from '../support/tenants.ts';
import { type Attack, describeAttacks, isQuick, type Trial } from './attack.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { failSyncs, smallDisk } from './faults.ts';
import { type Load, startLoad } from './load.ts';
import { callBody, eventually, expectPlacing, expectReady, openScene, type Scene } from './scene.ts';

type Database = { database?: string | undefined; cluster?: Cluster };
type Outage = Omit<Attack, 'run'> & {
  /** @returns the database, if it needs a special one, and functions that break something under load and repair it */
  prepare(trial: Trial): Promise<Database & { extra?: object; fault(scene: Scene, load: Load): Promise<void> }>;
};

/** Long enough to fill the space that SQLite and PostgreSQL have reserved for their logs. */
const variables = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`v${n}`, 'x'.repeat(1_000)]));

/**
 * Under load, a part of the database fails for a while, several times. The core is killed after one failure, and asked to stop after the
 * next.
 */
const outages: readonly Outage[] = [
  {
    name: 'lock',
    title: 'the database locked by another process',
    quickOn: 'postgres',
    prepare: async () => ({
      async fault(scene, load) {
        await load.stop();
        for (let times = 0; times < (isQuick ? 1 : 2); times++) await lockOnce(scene);
      },
    }),
  },
  {
    name: 'disk-full',
    title: 'the disk full',
    quickOn: null,
    async prepare(trial) {
      const disk = smallDisk(trial, trial.kind === 'sqlite' ? 48 : 192);
      const { database, cluster } = await ownDatabase(trial, disk.directory);
      return {
        ...{ database, extra: { variables } },
        async fault(scene, load) {
          disk.fill();
          if (await eventually(() => hasStopped(load), 30_000)) await expectReady(scene, false, 'while the disk is full');
          else scene.ledger.note('the disk was never full enough to stop it');
          await pause(2_000);
          disk.free();
          await cluster?.revive();
        },
      };
    },
  },
  {
    name: 'fsync',
    title: 'fsync failing',
    async prepare(trial) {
      const { database, cluster } = await ownDatabase(trial);
      return {
        database,
        async fault(scene) {
          const { ledger } = scene;
          const stop = await failSyncs(trial, cluster?.processes() ?? [scene.core().child.pid ?? 0]);
          await pause(500);
          const before = ledger.placed.size;
          await expectReady(scene, false, 'while no write reaches the disk');
          await pause(isQuick ? 1_000 : 4_000);
          if (ledger.placed.size > before)
            ledger.fail(`${ledger.placed.size - before} calls were acknowledged while no write reached the disk`);
          await stop();
          await cluster?.revive();
        },
      };
    },
  },
  ofServer('restart', 'PostgreSQL restarted', async (cluster, _scene, load) => {
    for (let times = 0; times < (isQuick ? 1 : 3); times++) {
      await cluster.crash();
      await load.more(50);
    }
  }),
  {
    ...ofServer('freeze', 'PostgreSQL frozen, then resumed', async (cluster, scene) => {
      cluster.signal('SIGSTOP');
      await Promise.all([expectReady(scene, false, 'while the server is frozen'), pause(14_000)]);
      cluster.signal('SIGCONT');
    }),
    quickOn: null,
  },
  ofServer('terminate', 'sessions terminated again and again', async (cluster) => {
    const end = performance.now() + (isQuick ? 2_000 : 10_000);
    while (performance.now() < end) {
      await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'callkey'`);
      await pause(50);
    }
  }),
];

const attacks: readonly Attack[] = outages.map(({ prepare, ...row }) => ({
  ...row,
  async run(trial) {
    const { fault, extra = {}, database } = await prepare(trial);
    const scene = await openScene(trial, { database });
    for (let round = 0; round < (isQuick ? 1 : 3); round++) {
      if (round > 0) await scene.start();
      const load = startLoad(scene, { extra });
      await load.more(100);
      await fault(scene, load);
      await expectPlacing(scene, `after ${row.title}`);
      await revokeAndUse(scene);
      await load.more(100);
      await load.stop();
      await scene.stopAndCompare(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
    }
  },
}));

function ofServer(name: string, title: string, fault: (cluster: Cluster, scene: Scene, load: Load) => Promise<void>): Outage {
  const prepare = async (trial: Trial) => {
    const cluster = await startCluster(trial);
    return { database: cluster.url, fault: (scene: Scene, load: Load) => fault(cluster, scene, load) };
  };
  return { name, title, databases: ['postgres'], prepare };
}

/** Creates a database only for this case: on PostgreSQL a server, on SQLite a file. */
async function ownDatabase(trial: Trial, directory?: string): Promise<Database> {
  if (trial.kind === 'sqlite') return directory === undefined ? {} : { database: `sqlite:${directory}/callkey.db` };
  const cluster = await startCluster(trial, directory);
  return { cluster, database: cluster.url };
}

/** Whether no call is acknowledged within a second. */
async function hasStopped(load: Load): Promise<boolean> {
  const before = load.acknowledged();
  await pause(1_000);
  return load.acknowledged() === before;
}

/** In ms. Longer than SQLite's two writers together wait for the lock, so that not only the dialer but also the requests run into it. */
const held = { sqlite: 12_000, postgres: 9_000 };
let locks = 0;

/** Makes a few cancels run into the lock first, and then many placed calls. Those that succeed afterwards use the same connection. */
async function lockOnce(scene: Scene): Promise<void> {
  const ids = Array.from({ length: 5 }, (_, n) => `later-${locks++}-${n}`);
  const notBefore = new Date(Date.now() + 3_600_000).toISOString();
  for (const requestId of ids) await scene.place(callBody(requestId, { notBefore }));
  const release = await holdLock(scene);
  const cancels = Promise.all(ids.map((id) => scene.ledger.cancel(scene.core().url, scene.campaignId, scene.key, id)));
  await pause(200);
  const load = startLoad(scene, { placers: 200, every: 1_000, cancels: false });
  await pause(held[scene.trial.kind]);
  await release();
  await expectReady(scene, true, 'after the lock');
  await load.more(200);
  await load.stop();
  await cancels;
}

/** Prevents the cores, which are separate processes, from writing. @returns a function that lets them write again */
async function holdLock({ trial, database }: Scene): Promise<() => Promise<void>> {
  const direct = await openDirect(database);
  trial.cleanup.defer(() => direct.close());
  const transaction = await direct.storage.database.write.transaction();
  if (trial.kind === 'postgres') {
    await transaction.raw('SET LOCAL idle_in_transaction_session_timeout = 0');
    await transaction.raw('LOCK TABLE calls IN ACCESS EXCLUSIVE MODE');
  }
  return async () => void (await transaction.rollback());
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

describeAttacks(...attacks);
