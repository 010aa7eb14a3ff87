import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { Problem } from '../domain/problem.ts';
import type { DatabaseLocation } from '../storage/database.ts';
import type { Storage } from '../storage/index.ts';

/** Writes a consistent copy of the database, while cores go on working. Refuses to write over a file. */
export async function backUp(storage: Storage, location: DatabaseLocation, file: string): Promise<void> {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
      throw new Problem('conflict', `There is a file ${file} already. Name another one, or move it away.`);
    }
    throw new Problem('invalid', `${file} cannot be written (${error instanceof Error ? error.message : String(error)}).`);
  }
  try {
    if (location.kind === 'sqlite') await storage.database.read.raw('VACUUM INTO ?', [file]);
    else await dump(location.url, file);
    sync(file);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

function sync(file: string): void {
  const descriptor = openSync(file, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** PostgreSQL's own tool, in its own format: `pg_restore` reads it. The address goes through the environment, which `ps` does not show. */
async function dump(url: string, file: string): Promise<void> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  const environment = {
    PGHOST: decodeURIComponent(hostname),
    PGPORT: port || '5432',
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
    ...(searchParams.has('sslmode') ? { PGSSLMODE: searchParams.get('sslmode') ?? '' } : {}),
  };
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const child = spawn('pg_dump', ['--format=custom', `--file=${file}`], {
    env: { ...process.env, ...set },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  const [code] = await once(child, 'close').catch(() => {
    throw new Problem(
      'unavailable',
      'PostgreSQL is backed up with its own pg_dump, which is not installed here. Install the PostgreSQL client tools.',
    );
  });
  if (code !== 0) throw new Problem('unavailable', `pg_dump failed: ${complaint.trim()}`);
}
