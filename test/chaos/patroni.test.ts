import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, own, readOwner } from '../../scripts/support/postgres.ts';
import { track } from '../../scripts/support/server-process.ts';
import { freshDirectory, postgresTools } from '../support/databases.ts';
import { listProcesses, queryOnce, signalAll } from '../support/postgres-node.ts';
import { skip } from '../support/suites.ts';
import { until } from '../support/until.ts';
import { describeAttacks, expectPlacing, openScene, type Scene, startLoad, type Trial } from './attack.ts';

/** A PostgreSQL server with the Patroni that manages it. */
type Node = { name: string; port: number; rest: string; kill(): void };

/** A typical setup: Patroni and etcd replace the primary, first on request and then because it died. The address names both hosts. */
async function switchAndFailOver(trial: Trial): Promise<void> {
  const bin = postgresTools();
  const missing = ['patroni', 'etcd'].find((program) => spawnSync(program, ['--version']).error);
  if (bin === undefined || missing !== undefined) skip(trial.context, `no ${missing ?? 'PostgreSQL in /usr/lib/postgresql'}`);
  const etcd = await startEtcd(trial);
  const one = await startNode(trial, 'one', bin, etcd);
  await waitFor(one, 'primary');
  const two = await startNode(trial, 'two', bin, etcd);
  await waitFor(two, 'sync');
  await queryOnce(`postgres://postgres@127.0.0.1:${one.port}/postgres`, 'CREATE DATABASE callkey');
  const scene = await openScene(trial, { database: `postgres://postgres@127.0.0.1:${one.port},127.0.0.1:${two.port}/callkey` });
  const load = startLoad(scene);
  await load.more(1_000, 60_000);
  await measureOutage(scene, 'switchover', two, async () => {
    const body = JSON.stringify({ leader: one.name, candidate: two.name });
    const answer = await fetch(`${one.rest}/switchover`, { method: 'POST', body });
    if (!answer.ok) throw new Error(`Patroni doesn't switch over: ${await answer.text()}`);
  });
  await load.more(1_000, 60_000);
  await waitFor(one, 'sync');
  await measureOutage(scene, 'kill -9', one, async () => two.kill());
  await load.more(1_000, 60_000);
  await load.stop();
  await scene.stopAndCompare('SIGTERM', `postgres://postgres@127.0.0.1:${one.port}/callkey`);
}

/** Records how long no calls could be placed. */
async function measureOutage(scene: Scene, what: string, next: Node, happen: () => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  await happen();
  await waitFor(next, 'primary');
  await expectPlacing(scene, `although Patroni has promoted the other after ${what}`);
  scene.ledger.note(`${what}: takes calls again after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
}

/** Waits until the node reports that it's the `primary` or the synchronous standby (`sync`). */
async function waitFor({ name, rest }: Node, role: string): Promise<void> {
  if (!(await until(() => isOk(`${rest}/${role}`), 90_000))) throw new Error(`node ${name} didn't become ${role}`);
}

const isOk = async (url: string) => (await fetch(url).catch(() => null))?.ok === true;

/** @returns its address */
async function startEtcd(trial: Trial): Promise<string> {
  const [port, peerPort] = [await freePort(), await freePort()];
  const [url, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const listen = [`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`, `--listen-peer-urls=${peer}`];
  const cluster = [`--initial-advertise-peer-urls=${peer}`, `--initial-cluster=default=${peer}`];
  const etcd = spawn('etcd', [`--data-dir=${join(freshDirectory(), 'etcd')}`, ...listen, ...cluster], { stdio: 'ignore' });
  const ended = track(etcd);
  trial.cleanup.defer(async () => {
    etcd.kill('SIGKILL');
    await ended;
  });
  if (!(await until(() => isOk(`${url}/health`), 30_000))) throw new Error("etcd doesn't start");
  return `127.0.0.1:${port}`;
}

async function startNode(trial: Trial, name: string, bin: string, etcd: string): Promise<Node> {
  const directory = freshDirectory();
  const data = join(directory, 'data');
  const [port, restPort] = [await freePort(), await freePort()];
  const [server, rest] = [`127.0.0.1:${port}`, `127.0.0.1:${restPort}`];
  // All other settings are Patroni's defaults.
  const configuration = {
    ...{ scope: 'callkey', name, etcd3: { host: etcd }, restapi: { listen: rest, connect_address: rest } },
    bootstrap: {
      // Without the first setting, Patroni promotes a standby that may lack the last commits.
      dcs: { synchronous_mode: true, postgresql: { use_pg_rewind: true } },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      ...{ listen: server, connect_address: server, data_dir: data, bin_dir: bin, pgpass: join(directory, 'pgpass') },
      pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
      authentication: { superuser: { username: 'postgres' }, replication: { username: 'replicator' } },
      parameters: { unix_socket_directories: '' },
    },
  };
  mkdirSync(data, { mode: 0o700 });
  // JSON is valid YAML.
  const file = join(directory, 'patroni.yml');
  writeFileSync(file, JSON.stringify(configuration));
  chmodSync(directory, 0o755);
  own(directory);
  const log = openSync(join(directory, 'patroni.log'), 'w');
  const child = spawn('patroni', [file], { ...readOwner(), cwd: directory, stdio: ['ignore', log, log] });
  // Killing Patroni doesn't end its PostgreSQL, so this kills both.
  const kill = () => {
    child.kill('SIGKILL');
    const pidFile = join(data, 'postmaster.pid');
    if (existsSync(pidFile)) signalAll(listProcesses(Number.parseInt(readFileSync(pidFile, 'utf8'), 10), data), 'SIGKILL');
  };
  process.once('exit', kill);
  trial.cleanup.defer(kill);
  return { name, port, rest: `http://${rest}`, kill };
}

describeAttacks({
  name: 'patroni',
  title: 'PostgreSQL switched over and failed over by Patroni and etcd',
  databases: ['postgres'],
  // Patroni waits half a minute before it assumes that a primary is dead.
  quickOn: null,
  run: switchAndFailOver,
});
