import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { systemClock } from '../../core/server/start/system.ts';
import { parseDatabaseUrl } from '../../core/storage/engine/database.ts';
import { createShards } from '../../core/storage/engine/postgres/cluster.ts';
import { openStorage, unobserved } from '../../core/storage/index.ts';
import { createFiles, freePort, postgresTools, startServer } from '../../scripts/support/postgres.ts';
import { listProcesses, signalAll } from '../chaos/cluster.ts';
import { freshDirectory } from './databases.ts';

/** Several PostgreSQL servers with Citus. The first node is the coordinator. */
export type Cluster = Awaited<ReturnType<typeof startCluster>>;
type Node = Awaited<ReturnType<typeof startNode>>;

const settings = [
  ...["shared_preload_libraries='citus'", 'max_connections=400', 'max_prepared_transactions=400', 'max_worker_processes=24'],
  ...['wal_level=logical', 'shared_buffers=32MB', "citus.node_conninfo='sslmode=disable'", 'citus.recover_2pc_interval=2s'],
  'citus.enable_statistics_collection=off',
];

/** Why this machine can't run the tests with Citus; undefined if it can. */
export function missingCitus(): string | undefined {
  const bin = postgresTools();
  if (bin === undefined) return 'no PostgreSQL with its tools in /usr/lib/postgresql';
  const share = execFileSync(join(bin, 'pg_config'), ['--sharedir'], { encoding: 'utf8' }).trim();
  return existsSync(join(share, 'extension', 'citus.control')) ? undefined : 'no Citus for that PostgreSQL';
}

async function startNode(bin: string, more: readonly string[]) {
  const programs = { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') };
  const [directory, port] = [freshDirectory(), await freePort()];
  const data = await createFiles(programs, directory, 'unused', ['--auth=trust']);
  // In a file instead of the command line, so that a test can change them.
  appendFileSync(join(data, 'postgresql.conf'), [...settings, ...more].join('\n'));
  const node = {
    port,
    data,
    server: await startServer(programs, data, port),
    url: (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`,
    /** Sends a signal to the server's processes. */
    signal: (name: NodeJS.Signals) => signalAll(listProcesses(node.server.pid ?? 0, data), name),
    async start(): Promise<void> {
      node.server = await startServer(programs, data, port);
    },
    async query<Row extends pg.QueryResultRow>(database: string, sql: string): Promise<Row[]> {
      const client = new pg.Client(node.url(database));
      client.on('error', () => undefined);
      await client.connect();
      try {
        return (await client.query<Row>(sql)).rows;
      } finally {
        await client.end().catch(() => undefined);
      }
    },
  };
  return node;
}

/** Starts a coordinator and two other nodes. @param more settings of all nodes */
export async function startCluster(more: readonly string[] = []) {
  const bin = postgresTools() ?? dirname('');
  const nodes = [await startNode(bin, more), await startNode(bin, more), await startNode(bin, more)] as const;
  const [coordinator, ...others] = nodes;
  return {
    nodes,
    /** Creates a database on all nodes, with Citus and without tables. @returns its name */
    async createDatabase(): Promise<string> {
      const name = `callkey_test_${randomBytes(6).toString('hex')}`;
      await Promise.all(
        nodes.map(async (node) => {
          await node.query('postgres', `CREATE DATABASE ${name}`);
          await node.query(name, 'CREATE EXTENSION citus');
        }),
      );
      await coordinator.query(name, `SELECT citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`);
      for (const { port } of others) await coordinator.query(name, `SELECT citus_add_node('127.0.0.1', ${port})`);
      return name;
    },
    /** @returns the DATABASE_URL of a database with shards and no rows, with the coordinator as the last of the hosts */
    async createWithShards(shards: number): Promise<string> {
      const name = await this.createDatabase();
      const location = parseDatabaseUrl(coordinator.url(name));
      if (!location) throw new Error(`${name} has no address.`);
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
      for (const { server } of nodes) server.kill('SIGQUIT');
      await Promise.all(nodes.map(({ server }) => server.exitCode ?? server.signalCode ?? new Promise((end) => server.once('exit', end))));
    },
  };
}

export function formatUrl(nodes: readonly Node[], database: string): string {
  return `postgres://postgres@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${database}`;
}
