import { type ChildProcess, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { operator } from '../../core/domain/audit/audit.ts';
import { createCampaign } from '../../core/domain/directory/directory.ts';
import type { Ports } from '../../core/domain/ports.ts';
import { systemClock } from '../../core/server/start/system.ts';
import { shardNumber } from '../../core/storage/engine/call-lanes.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { createShards } from '../../core/storage/engine/postgres/cluster.ts';
import { openStorage, unobserved } from '../../core/storage/storage.ts';
import { createFiles, freePort, type Programs, startServer } from '../../scripts/support/postgres.ts';
import { freshDirectory, postgresTools } from './databases.ts';
import { until } from './until.ts';

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

/** Several PostgreSQL servers with Citus. The first node is the coordinator. */
export type Cluster = Awaited<ReturnType<typeof startCluster>>;

/** The page about setting up a cluster. The tests use its settings and commands. */
const page = readFileSync(new URL('../../core/docs/scaling.md', import.meta.url), 'utf8');

/** Returns the lines of a code block on the page, with the addresses of `nodes`. @param after text that comes before the block */
export function readPage(language: 'ini' | 'sh' | 'sql', after: string, nodes: readonly { port: number }[] = []): string[] {
  const [, block] = new RegExp(`\`\`\`${language}\\n([^\`]*)\`\`\``).exec(page.slice(page.indexOf(after))) ?? [];
  if (block === undefined) throw new Error(`The page has no ${language} code block after "${after}".`);
  const formatPort = (_: string, n = '1') => `'127.0.0.1', ${nodes[Number(n) - 1]?.port}`;
  return block
    .trim()
    .split('\n')
    .map((line) => line.trim().replace(/'(?:coordinator|node(\d))', 5432/, formatPort));
}

/** The page's settings, with less memory, without TLS, and without waiting for the disk. */
const settings = [
  ...readPage('ini', '### Set it up'),
  ...['shared_buffers=32MB', "citus.node_conninfo='sslmode=disable'", 'citus.enable_statistics_collection=off'],
  'fsync=off',
];

/** Why this machine can't run the tests with Citus; undefined if it can. */
export function missingCitus(): string | undefined {
  const bin = postgresTools();
  if (bin === undefined) return 'no PostgreSQL with its tools in /usr/lib/postgresql';
  const share = execFileSync(join(bin, 'pg_config'), ['--sharedir'], { encoding: 'utf8' }).trim();
  return existsSync(join(share, 'extension', 'citus.control')) ? undefined : 'no Citus for that PostgreSQL';
}

/** Starts a coordinator and two other nodes. @param more additional settings for all nodes */
export async function startCluster(more: readonly string[] = []) {
  const bin = postgresTools() ?? dirname('');
  const programs = { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') };
  // Never started. The nodes have copies of its files, because creating them takes a second of processor time.
  const files = await createNode(programs, { settings: [...settings, ...more] });
  let copies = 0;
  async function startNode(): Promise<PostgresNode> {
    const data = `${files.data}-${++copies}`;
    execFileSync('cp', ['-a', files.data, data]);
    const node = await nodeAt(programs, data);
    await node.start();
    return node;
  }
  const nodes = [await startNode(), await startNode(), await startNode()] as const;
  const [coordinator, ...others] = nodes;
  const added: PostgresNode[] = [];
  const prepare = async (node: PostgresNode, name: string) => {
    await node.query('postgres', `CREATE DATABASE ${name}`);
    await node.query(name, 'CREATE EXTENSION citus');
  };
  return {
    nodes,
    /** Creates a database on all nodes, with Citus and without tables. @returns its name */
    async createDatabase(): Promise<string> {
      const name = `callkey_test_${randomBytes(6).toString('hex')}`;
      await Promise.all(nodes.map((node) => prepare(node, name)));
      for (const sql of readPage('sql', '### Set it up', nodes)) await coordinator.query(name, sql);
      return name;
    },
    /** Creates a database with an earlier version of the extension, which the installed Citus can't use. @returns its DATABASE_URL */
    async createEarlier(version: string): Promise<string> {
      const name = `callkey_test_${randomBytes(6).toString('hex')}`;
      await coordinator.query('postgres', `CREATE DATABASE ${name}`);
      await coordinator.query('postgres', `ALTER DATABASE ${name} SET citus.enable_version_checks = off`);
      await coordinator.query(name, `CREATE EXTENSION citus VERSION '${version}'`);
      return coordinator.url(name);
    },
    /** Starts another node, which doesn't belong to the database yet. */
    async startAnother(name: string): Promise<PostgresNode> {
      const node = await startNode();
      added.push(node);
      await prepare(node, name);
      return node;
    },
    /** @returns the DATABASE_URL of a database with shards and no rows, with the coordinator as the last of the hosts */
    async createWithShards(shards: number): Promise<string> {
      const name = await this.createDatabase();
      const location = parseDatabaseUrl(coordinator.url(name));
      const storage = openStorage(location, systemClock, unobserved);
      try {
        await storage.migrate();
        await createShards(storage.database, shards);
      } finally {
        await storage.close();
      }
      return formatUrl([...others, coordinator], name);
    },
    async stop(): Promise<void> {
      await Promise.all([...nodes, ...added].map((node) => node.stop()));
    },
  };
}

/**
 * Has Citus reach a node at another port, for example through a gate. Citus tells the nodes in the background, and refuses to
 * change the schema until all of them know it, so this waits for that.
 */
export async function changeNodePort({ query }: PostgresNode, database: string, from: number, to: number): Promise<void> {
  await query(database, `SELECT citus_update_node(nodeid, '127.0.0.1', ${to}) FROM pg_dist_node WHERE nodeport = ${from}`);
  await until(async () => (await query(database, 'SELECT FROM pg_dist_node WHERE NOT metadatasynced')).length === 0);
}

/** Moves a shard to the node with this port. Retries while Citus can't clean up what an earlier move left behind. */
export async function moveShard({ query }: PostgresNode, database: string, schema: string, port: number): Promise<void> {
  await until(async () => {
    try {
      await query(database, `SELECT citus_schema_move('${schema}', '127.0.0.1', ${port})`);
      return true;
    } catch (error) {
      if (String(error).includes('could not be cleaned up')) return false;
      throw error;
    }
  });
}

export function formatUrl(nodes: readonly PostgresNode[], database: string): string {
  return `postgres://postgres@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${database}`;
}

/** Creates a campaign whose calls are in one of these shards. */
export async function createCampaignIn(
  ports: Ports,
  accountId: string,
  shards: number,
  isRight: (shard: number) => boolean,
): Promise<{ id: string }> {
  for (let n = 0; ; n++) {
    const campaign = await createCampaign(ports, operator, `Campaign ${n}`, accountId);
    if (isRight(shardNumber(campaign.id, shards))) return campaign;
  }
}
