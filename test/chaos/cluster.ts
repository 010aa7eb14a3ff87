import { type ChildProcess, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, chmodSync, cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { createFiles, formatAddress, freePort, npmPrograms, own, quickPasswords, startServer } from '../../scripts/support/postgres.ts';
import { freshDirectory } from '../support/databases.ts';
import { endLater, type Trial } from './attack.ts';
import { eventually } from './scene.ts';

/** A PostgreSQL server that only one attack uses, so that it can be broken. */
export type Cluster = Awaited<ReturnType<typeof clusterAt>>;

const programs = await npmPrograms();
const password = randomBytes(16).toString('hex');

/** @param directory for the server's files; its size is limited if the attack fills the disk */
export async function startCluster(trial: Trial, directory = freshDirectory()): Promise<Cluster> {
  const cluster = await clusterAt(trial, await createFiles(programs, directory, password, [...quickPasswords, '--wal-segsize=1']));
  await cluster.start();
  await cluster.query('CREATE DATABASE callkey');
  return cluster;
}

/** Returns a standby that the primary waits for: nothing is committed before it's on both servers. */
export async function addStandby(trial: Trial, primary: Cluster): Promise<Cluster> {
  await primary.stop('SIGINT');
  const directory = freshDirectory();
  const data = join(directory, 'data');
  cpSync(primary.data, data, { recursive: true, preserveTimestamps: true });
  chmodSync(directory, 0o755);
  chmodSync(data, 0o700);
  writeFileSync(join(data, 'standby.signal'), '');
  const connection = `host=127.0.0.1 port=${primary.port} user=postgres password=${password} application_name=standby`;
  // In a file, because every user of the machine could read the command line.
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${connection}'\n`);
  own(directory);
  const standby = await clusterAt(trial, data);
  await primary.start('synchronous_standby_names=standby');
  await standby.start('wal_retrieve_retry_interval=200ms');
  return standby;
}

async function clusterAt(trial: Trial, data: string) {
  const port = await freePort();
  const query = (sql: string) => queryOnce(formatAddress(port, password, 'postgres'), sql);
  const isUp = () => query('SELECT 1').then(Boolean, () => false);
  let server: ChildProcess | undefined;
  const processes = () => listProcesses(server?.pid ?? 0, data);

  async function start(...settings: string[]): Promise<void> {
    server = await startServer(programs, data, port, ['max_wal_size=8MB', 'min_wal_size=2MB', ...settings]);
    endLater(trial, () => signalAll(processes(), 'SIGKILL'));
  }
  /** Shuts the server down fast (SIGINT), or as in a crash (SIGQUIT). */
  async function stop(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(signal);
    await ended;
  }
  return {
    ...{ port, data, query, start, stop, url: formatAddress(port, password, 'callkey') },
    /** The IDs of the server's processes, the main process first. */
    processes,
    signal: (name: NodeJS.Signals) => signalAll(processes(), name),
    /** Starts the server again if it doesn't respond. */
    async revive(): Promise<void> {
      if (await eventually(isUp, 3_000)) return;
      await stop('SIGQUIT');
      await start();
    },
  };
}

export async function queryOnce(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Returns the process IDs of the server on these files, the main process first. Returns none if another process now has the main
 * process ID.
 */
export function listProcesses(main: number, data: string): number[] {
  const lines = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).matchAll(/^ *(\d+) +(\d+) (.*)$/gm);
  const all = [...lines].map(([, pid, parent, line = '']) => ({ pid: Number(pid), parent: Number(parent), line }));
  if (!all.some(({ pid, line }) => pid === main && line.includes(data))) return [];
  return [main, ...all.filter(({ parent }) => parent === main).map(({ pid }) => pid)];
}

/** Sends a signal to each process, and ignores processes that have already ended. */
export function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {}
  }
}
