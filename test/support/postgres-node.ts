import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { createFiles, freePort, type Programs, startServer } from '../../scripts/support/postgres.ts';
import { freshDirectory } from './databases.ts';

/** A PostgreSQL server that only one test uses, so that it can be broken. */
export type PostgresNode = Awaited<ReturnType<typeof nodeAt>>;

type Options = { settings?: readonly string[]; flags?: readonly string[]; directory?: string | undefined };

/**
 * Creates a server, which isn't started yet.
 *
 * @param options `settings` in the form of `postgresql.conf`, `flags` for initdb, and the directory for the server's files
 */
export async function createNode(
  programs: Programs,
  { settings = [], flags = [], directory = freshDirectory() }: Options = {},
): Promise<PostgresNode> {
  const data = await createFiles(programs, directory, 'unused', ['--auth=trust', ...flags]);
  // The settings are in a file instead of on the command line, so that a test can change them.
  appendFileSync(join(data, 'postgresql.conf'), settings.map((line) => `${line}\n`).join(''));
  return nodeAt(programs, data);
}

/** Returns a server for existing files, which isn't started yet. */
export async function nodeAt(programs: Programs, data: string) {
  const port = await freePort();
  let server: ChildProcess | undefined;
  const node = {
    port,
    data,
    url: (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`,
    query: <Row extends pg.QueryResultRow>(database: string, sql: string): Promise<Row[]> => queryOnce(node.url(database), sql),
    /** The IDs of the server's processes, the main process first. */
    processes: (): number[] => listProcesses(server?.pid ?? 0, node.data),
    /** Sends a signal to the server's processes. */
    signal: (name: NodeJS.Signals): void => signalAll(node.processes(), name),
    /** Starts the server, possibly on other files. */
    async start(files = data): Promise<void> {
      node.data = files;
      server = await startServer(programs, files, port);
    },
    /** Stops the server as in a crash, even if it's frozen. */
    async stop(): Promise<void> {
      if (!server || server.exitCode !== null || server.signalCode !== null) return;
      const ended = once(server, 'exit');
      node.signal('SIGCONT');
      server.kill('SIGQUIT');
      await ended;
    },
  };
  return node;
}

export async function queryOnce<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<Row>(sql)).rows;
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
