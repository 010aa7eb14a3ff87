import { startPgBouncer } from '../../test/support/pgbouncer.ts';
import { openStage } from './environment.ts';
import { commitOf, databaseVersion, type Machine, machineOf } from './machine.ts';
import { run, startCore, startServer } from './processes.ts';
import { cancelling, placing } from './requests.ts';
import type { Scale } from './scale.ts';
import { cancelsPerSecond, type Measured, measure, type Row } from './workloads.ts';

export const ways = ['no pooler', 'transaction mode', 'session mode'] as const;
export const operations = ['place', 'cancel'] as const;

/** What PgBouncer between core and PostgreSQL costs. Each row is named by its operation and its way, such as `place, session mode`. */
export type Poolers = { at: string; commit: string; machine: Machine; database: string; pooler: string; rows: Row[] };

/** Cores on one PostgreSQL, each with ten connections: its own, or those of a PgBouncer. */
export async function poolers(scale: Scale, say: (line: string) => void): Promise<Poolers> {
  const { stdout } = await run('pgbouncer', ['--version']);
  const [pooler] = stdout.split('\n');
  if (!pooler) throw new Error('This needs PgBouncer: apt-get install pgbouncer.');
  const about = { at: new Date().toISOString(), commit: await commitOf(), machine: await machineOf(), pooler };
  const stage = await openStage('postgres');
  const bare = await startServer('servers/bare.ts');
  const rows: Measured[] = [];
  for (const way of ways) {
    const through =
      way === 'no pooler' ? null : await startPgBouncer(stage.database, way === 'session mode' ? 'session' : 'transaction', 10);
    const server = through ? await startCore(through.url) : stage.core;
    const prepare = (seconds: number) => stage.queue(seconds * cancelsPerSecond);
    rows.push(
      { name: `place, ${way}`, goal: null, server, target: placing(server.url, stage.path, stage.keys) },
      { name: `cancel, ${way}`, goal: null, server, target: cancelling(server.url, stage.path, stage.keys[0] ?? ''), prepare },
    );
  }
  const measured = await measure(stage, rows, bare, scale, say);
  const database = await databaseVersion(stage);
  await stage.close();
  return { ...about, database, rows: measured };
}
