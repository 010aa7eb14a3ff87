import { cpus, release, totalmem, type } from 'node:os';
import type { Stage } from './environment.ts';
import { run } from './processes.ts';
import { wrkVersion } from './wrk.ts';

/** Where figures come from: they mean little without it. */
export type Machine = Readonly<Record<string, string>>;

export async function machineOf(): Promise<Machine> {
  return {
    processor: `${cpus().length} cores of ${cpus()[0]?.model}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${type()} ${release()}`,
    node: `Node.js ${process.versions.node}`,
    load: `${await wrkVersion()} on the same machine`,
  };
}

export async function databaseVersion({ kind, direct }: Stage): Promise<string> {
  const sql = kind === 'sqlite' ? 'SELECT sqlite_version() AS version' : `SELECT current_setting('server_version') AS version`;
  const [row] = await direct.storage.database.query<{ version: string }>(sql);
  return `${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${row?.version}`;
}

/** The commit that is measured, and whether the working tree has other changes. */
export async function commitOf(): Promise<string> {
  const { stdout: commit } = await run('git', ['rev-parse', '--short=12', 'HEAD']);
  const { stdout: changes } = await run('git', ['status', '--porcelain', '--untracked-files=no']);
  return `${commit.trim() || 'unknown'}${changes.trim() === '' ? '' : ' with changes'}`;
}
