import { cpus, release, totalmem, type } from 'node:os';
import type { Stage } from './stage.ts';
import { wrkVersion } from './wrk.ts';

/** Where figures come from: they mean little without it. */
export type Machine = Readonly<Record<'processor' | 'cores' | 'memory' | 'system' | 'node' | 'sqlite' | 'postgres' | 'load', string>> & {
  settings?: string;
};

export async function machine(stages: readonly Stage[]): Promise<Machine> {
  const versionOf = async (kind: Stage['kind'], sql: string): Promise<string> => {
    const stage = stages.find((one) => one.kind === kind);
    const answer: unknown = await stage?.beside.storage.database.read.raw(sql);
    return /"version":"([^"]+)"/.exec(JSON.stringify(answer))?.[1] ?? '';
  };
  return {
    processor: cpus()[0]?.model ?? '',
    cores: String(cpus().length),
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${type()} ${release()}`,
    node: process.version,
    sqlite: await versionOf('sqlite', 'SELECT sqlite_version() AS version'),
    postgres: await versionOf('postgres', `SELECT current_setting('server_version') AS version`),
    load: `${await wrkVersion()}, 64 connections, on the same machine`,
  };
}
