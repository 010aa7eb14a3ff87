import { cpus, release, totalmem, type } from 'node:os';
import type { Stage } from './environment.ts';
import { wrkVersion } from './wrk.ts';

/** Where figures come from: they mean little without it. */
export type Machine = Readonly<Record<string, string>>;

export async function machine({ kind, direct }: Stage): Promise<Machine> {
  const sql = kind === 'sqlite' ? 'SELECT sqlite_version() AS version' : `SELECT current_setting('server_version') AS version`;
  const answer: unknown = await direct.storage.database.read.raw(sql);
  return {
    processor: `${cpus().length} cores of ${cpus()[0]?.model}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${type()} ${release()}`,
    node: `Node.js ${process.versions.node}`,
    [kind]: `${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${/"version":"([^"]+)"/.exec(JSON.stringify(answer))?.[1]}`,
    load: `${await wrkVersion()} on the same machine`,
  };
}
