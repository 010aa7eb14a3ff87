import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { bareEnvironment } from './commands.ts';
import { type RunningCore, testSecret } from './core.ts';
import { createKey, createTenants, openDirect, signIn, type Tenants } from './tenants.ts';
import { until } from './until.ts';

export const main = fileURLToPath(new URL('../../core/main.ts', import.meta.url));

/** Starts a core that may not get as far as listening. */
export function start(database: string) {
  const env = { ...bareEnvironment, PORT: '0', MANAGEMENT_PORT: '0', DATABASE_URL: database, SESSION_SECRETS: testSecret };
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', (line) => lines.push(line));
  return { child, lines, ended: once(child, 'close') };
}

export async function connected(database: string): Promise<pg.Client> {
  const client = new pg.Client(database);
  await client.connect();
  return client;
}

/** Waits until a query returns rows, or no longer does. */
export const untilQuery = (client: pg.Client, sql: string, finds: boolean) =>
  until(async () => ((await client.query(sql)).rowCount ?? 0) > 0 === finds);

export const sessions = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'callkey'`;

/** Returns everything that a test needs to place calls. */
export async function withKey(database: string, core: RunningCore): Promise<{ tenants: Tenants; key: string; cookie: string }> {
  const direct = await openDirect(database);
  const tenants = await createTenants(direct.ports);
  await direct.close();
  const cookie = await signIn(core.url, 'ada@example.com');
  return { tenants, cookie, key: (await createKey(core.url, cookie)).keyValue };
}
