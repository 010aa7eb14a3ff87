import { execFileSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { npmPrograms, own } from '../../scripts/support/postgres.ts';
import { createNode, nodeAt, type PostgresNode } from '../support/postgres-node.ts';
import { startFront } from '../support/proxies.ts';
import { until } from '../support/until.ts';
import { type Attack, describeAttacks, expectPlacing, isQuick, openScene, startLoad } from './attack.ts';

type Row = Pick<Attack, 'name' | 'title' | 'quickOn'> & {
  /**
   * Whether the standby is unreachable for a while. If so, the cores use one address that always leads to the primary, like a service
   * address.
   */
  isLagging?: true;
};

const rows: readonly Row[] = [
  { name: 'lagging', title: 'PostgreSQL failed over after the standby was unreachable', quickOn: null, isLagging: true },
  { name: 'hosts', title: 'PostgreSQL failed over, with both hosts in the address' },
];

/** The primary dies. Its synchronous standby, which has everything that was acknowledged, takes over. */
const attacks: readonly Attack[] = rows.map(({ isLagging, ...row }) => ({
  ...row,
  databases: ['postgres'],
  async run(trial) {
    const programs = await npmPrograms();
    const primary = await createNode(programs, { settings: ['synchronous_standby_names = standby'] });
    const standby = await nodeAt(programs, copyToStandby(primary));
    for (const node of [primary, standby]) {
      trial.cleanup.defer(() => node.stop());
      await node.start();
    }
    const inSync = `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`;
    if (!(await until(async () => (await primary.query('postgres', inSync)).length > 0, 15_000)))
      throw new Error("the standby didn't follow");
    await primary.query('postgres', 'CREATE DATABASE callkey');
    const front = await startFront();
    trial.cleanup.defer(() => front.close());
    front.leadTo(primary.url('callkey'));
    const hosts = `127.0.0.1:${standby.port},127.0.0.1:${primary.port}`;
    const database = isLagging ? front.toThrough(primary.url('callkey')) : `postgres://postgres@${hosts}/callkey`;
    const scene = await openScene(trial, { database });
    const load = startLoad(scene);
    await load.more(isQuick ? 200 : 2_000, 60_000);
    if (isLagging) {
      standby.signal('SIGSTOP');
      // Waits for a time instead of a number of calls, because nothing is committed without the standby.
      await pause(isQuick ? 9_000 : 30_000);
    }
    primary.signal('SIGKILL');
    standby.signal('SIGCONT');
    await standby.query('postgres', 'SELECT pg_promote()');
    front.leadTo(standby.url('callkey'));
    await expectPlacing(scene, 'although the standby has taken over');
    await load.more(100);
    await load.stop();
    await scene.stopAndCompare('SIGTERM', standby.url('callkey'));
  },
}));

/** Copies the files of a primary that isn't started yet. The primary waits for this standby: nothing is committed before it's on both. */
function copyToStandby(primary: PostgresNode): string {
  const data = join(dirname(primary.data), 'standby');
  execFileSync('cp', ['-a', primary.data, data]);
  writeFileSync(join(data, 'standby.signal'), '');
  const connection = `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=postgres application_name=standby'`;
  const settings = [connection, 'wal_retrieve_retry_interval = 200ms', "synchronous_standby_names = ''"];
  appendFileSync(join(data, 'postgresql.conf'), settings.map((line) => `${line}\n`).join(''));
  own(data);
  return data;
}

describeAttacks(...attacks);
