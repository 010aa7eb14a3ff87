import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from './postgres.ts';
import { track } from './server-process.ts';

export type Pooler = { url: string; stop(): Promise<void> };

/**
 * Starts a PgBouncer with a few shared connections; in session mode, one for each client.
 *
 * @param directory for its file @returns null if it isn't installed
 */
export async function startPgBouncer(
  directory: string,
  database: string,
  poolMode: 'session' | 'transaction' | 'statement',
  poolSize = poolMode === 'session' ? 50 : 3,
): Promise<Pooler | null> {
  if (spawnSync('pgbouncer', ['--version']).error) return null;
  const target = new URL(database);
  const port = await freePort();
  const file = join(directory, 'pgbouncer.ini');
  const name = target.pathname.slice(1);
  const settings = [
    '[databases]',
    `${name} = host=${target.hostname} port=${target.port} dbname=${name} user=${target.username} password=${target.password}`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1`,
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    `pool_mode = ${poolMode}`,
    `default_pool_size = ${poolSize}`,
  ];
  writeFileSync(file, `${settings.join('\n')}\n`);
  // PgBouncer refuses to run as root, so it runs as nobody, who needs access to its file.
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  chmodSync(directory, 0o755);
  if (nobody.uid !== undefined) chownSync(file, nobody.uid, nobody.gid);
  chmodSync(file, 0o600);
  const child = spawn('pgbouncer', [file], { ...nobody, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = track(child);
  const output: string[] = [];
  const up = new Promise<void>((resolve) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      output.push(line);
      if (line.includes('process up')) resolve();
    });
  });
  const failed = ended.then(() => {
    throw new Error(`PgBouncer didn't start:\n${output.join('\n')}`);
  });
  await Promise.race([up, failed]);
  failed.catch(() => undefined);
  return {
    url: Object.assign(new URL(database), { hostname: '127.0.0.1', port: String(port) }).href,
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
