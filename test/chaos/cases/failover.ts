import { setTimeout as pause } from 'node:timers/promises';
import { addStandby, type Cluster, startCluster } from '../cluster.ts';
import { callsIn, eventually, expectPlacing, expectReady, openScene, type Trial } from '../environment.ts';
import { startLoad } from '../load.ts';
import { switchboard } from '../proxy.ts';
import type { Case } from '../run.ts';

/** The primary dies, and its synchronous standby takes over: what was acknowledged is on it. */
export const failover: Case = {
  name: 'failover',
  title: 'PostgreSQL failed over to a synchronous standby',
  databases: ['postgres'],
  // The two below go through the same, and more.
  quickDatabases: [],
  attack: (trial) => failOver(trial, async () => undefined),
};

/** The same, after the standby has been out of reach for a while: nothing is committed then, and nobody waits for it. */
export const lagging: Case = {
  name: 'lagging',
  title: 'failed over after the standby had been out of reach',
  databases: ['postgres'],
  attack: (trial) =>
    failOver(trial, async (standby) => {
      standby.signal('SIGSTOP');
      await pause(trial.isQuick ? 9_000 : 30_000);
    }),
};

/** The same, without a proxy: the address names both hosts. */
export const hosts: Case = {
  name: 'hosts',
  title: 'failed over, with both hosts in the address',
  databases: ['postgres'],
  attack: (trial) => failOver(trial, async () => undefined, bothHosts),
};

type Line = { database: string; switchTo(port: number): void };
type LineTo = (trial: Trial, primary: Cluster, standby: Cluster) => Promise<Line>;

async function proxied(trial: Trial, primary: Cluster): Promise<Line> {
  const line = await switchboard(trial, primary.port);
  return { database: Object.assign(new URL(primary.url()), { port: String(line.port) }).href, switchTo: line.switchTo };
}

async function bothHosts(_trial: Trial, primary: Cluster, standby: Cluster): Promise<Line> {
  const both = [standby, primary].map(({ port }) => `127.0.0.1:${port}`).join(',');
  return { database: primary.url().replace(`127.0.0.1:${primary.port}`, both), switchTo: () => undefined };
}

async function failOver(trial: Trial, before: (standby: Cluster) => Promise<void>, lineTo: LineTo = proxied): Promise<void> {
  const primary = await startCluster(trial);
  const standby = await addStandby(trial, primary);
  await waitForSync(primary);
  const { database, switchTo } = await lineTo(trial, primary, standby);
  const scene = await openScene(trial, { database });
  const load = startLoad(scene);
  await load.more(trial.isQuick ? 200 : 2_000, 60_000);
  await before(standby);
  primary.signal('SIGKILL');
  standby.signal('SIGCONT');
  await standby.control('promote');
  switchTo(standby.port);
  await expectReady(scene, true, 'although the standby has taken over');
  await expectPlacing(scene, 'although the standby has taken over');
  await load.more(100);
  await load.stop();
  await scene.stop('SIGTERM');
  trial.ledger.compare(await callsIn(standby.url()));
}

async function waitForSync(primary: Cluster): Promise<void> {
  const isSync = async () => (await primary.query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)).length > 0;
  if (!(await eventually(isSync, 15_000))) throw new Error('the standby does not follow');
}
