import { setTimeout as pause } from 'node:timers/promises';
import { startFront } from '../support/front.ts';
import { type Attack, describeAttacks, isQuick, type Trial } from './attack.ts';
import { addStandby, type Cluster, startCluster } from './cluster.ts';
import { startLoad } from './load.ts';
import { eventually, expectPlacing, openScene } from './scene.ts';

/** How cores connect to the primary, and to the standby after it has taken over. */
type Route = (trial: Trial, primary: Cluster, standby: Cluster) => Promise<{ database: string; switchOver(): void }>;
type Row = Pick<Attack, 'name' | 'title' | 'quickOn'> & { route: Route; isLagging?: true };

const rows: readonly Row[] = [
  // While the standby is unreachable, nothing is committed, so the attack waits for a fixed time instead of a number of calls.
  {
    name: 'lagging',
    title: 'PostgreSQL failed over after the standby was unreachable',
    quickOn: null,
    route: oneAddress,
    isLagging: true,
  },
  { name: 'hosts', title: 'PostgreSQL failed over, with both hosts in the address', route: bothHosts },
];

/** The primary dies. Its synchronous standby, which has everything that was acknowledged, takes over. */
const attacks: readonly Attack[] = rows.map(({ route, isLagging, ...row }) => ({
  ...row,
  databases: ['postgres'],
  async run(trial) {
    const primary = await startCluster(trial);
    const standby = await addStandby(trial, primary);
    const isSync = async () => (await primary.query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)).length > 0;
    if (!(await eventually(isSync, 15_000))) throw new Error("the standby didn't follow");
    const { database, switchOver } = await route(trial, primary, standby);
    const scene = await openScene(trial, { database });
    const load = startLoad(scene);
    await load.more(isQuick ? 200 : 2_000, 60_000);
    if (isLagging) {
      standby.signal('SIGSTOP');
      await pause(isQuick ? 9_000 : 30_000);
    }
    primary.signal('SIGKILL');
    standby.signal('SIGCONT');
    await standby.query('SELECT pg_promote()');
    switchOver();
    await expectPlacing(scene, 'although the standby has taken over');
    await load.more(100);
    await load.stop();
    await scene.stopAndCompare('SIGTERM', standby.url);
  },
}));

async function bothHosts(_: Trial, primary: Cluster, standby: Cluster) {
  const hosts = [standby, primary].map(({ port }) => `127.0.0.1:${port}`).join(',');
  return { database: primary.url.replace(`127.0.0.1:${primary.port}`, hosts), switchOver: () => undefined };
}

/** Returns one address in front of both servers, like a service address. */
async function oneAddress(trial: Trial, primary: Cluster, standby: Cluster) {
  const front = await startFront();
  trial.cleanup.defer(() => front.close());
  front.leadTo(primary.url);
  return { database: front.toThrough(primary.url), switchOver: () => front.leadTo(standby.url) };
}

describeAttacks(...attacks);
