import { execFileSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { npmPrograms, own } from '../../scripts/support/postgres.ts';
import { createNode, formatUrl, nodeAt, type PostgresNode } from '../support/postgres-node.ts';
import { until } from '../support/until.ts';
import { describeAttacks, expectPlacing, isQuick, openScene, startLoad, type Trial } from './attack.ts';

/** The primary dies. Its synchronous standby, which has everything that was acknowledged, takes over. The address names both hosts. */
async function failOver(trial: Trial): Promise<void> {
  const programs = await npmPrograms();
  const primary = await createNode(programs, ['synchronous_standby_names = standby']);
  const standby = await nodeAt(programs, copyToStandby(primary));
  for (const node of [primary, standby]) {
    trial.cleanup.defer(() => node.stop());
    await node.start();
  }
  const inSync = `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`;
  if (!(await until(async () => (await primary.query('postgres', inSync)).length > 0, 15_000)))
    throw new Error("the standby didn't follow");
  await primary.query('postgres', 'CREATE DATABASE callkey');
  const scene = await openScene(trial, { database: formatUrl([standby, primary], 'callkey') });
  const load = startLoad(scene);
  await load.more(isQuick ? 200 : 2_000, 60_000);
  primary.signal('SIGKILL');
  await standby.query('postgres', 'SELECT pg_promote()');
  await expectPlacing(scene, 'although the standby has taken over');
  await load.more(100);
  await load.stop();
  await scene.stopAndCompare('SIGTERM', standby.url('callkey'));
}

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

describeAttacks({ name: 'hosts', title: 'PostgreSQL failed over', databases: ['postgres'], run: failOver });
