import { startPgBouncer } from '../support/pgbouncer.ts';
import { databaseVersion, describeOrigin, type Origin, openStage } from './environment.ts';
import { counts, formatDate, table } from './markdown.ts';
import { run, startCore, startServer } from './processes.ts';
import { cancelling, placing } from './requests.ts';
import { type Measured, measure, type Row, type Say, type Scale } from './workloads.ts';

const ways = ['no pooler', 'transaction mode', 'session mode'] as const;

/** What PgBouncer between a core and PostgreSQL costs. Each row is named after its operation and mode, such as `place, session mode`. */
export type Poolers = Origin & { database: string; pooler: string; rows: Row[] };

/** Measures cores on one PostgreSQL, each with ten connections: its own, or PgBouncer's. */
export async function poolers(scale: Scale, say: Say): Promise<Poolers> {
  const [pooler] = (await run('pgbouncer', ['--version'])).stdout.split('\n');
  if (!pooler) throw new Error('This needs PgBouncer: apt-get install pgbouncer.');
  const origin = await describeOrigin();
  const stage = await openStage('postgres');
  const { path, keys, key } = stage;
  const rows: Measured[] = [];
  for (const way of ways) {
    const through =
      way === 'no pooler' ? null : await startPgBouncer(stage.database, way === 'session mode' ? 'session' : 'transaction', 10);
    const server = through ? await startCore(through.url) : stage.core;
    rows.push({ name: `place, ${way}`, server, target: placing(server.url, path, keys) });
    rows.push({ name: `cancel, ${way}`, server, target: cancelling(server.url, path, key), isCancel: true });
  }
  const measured = await measure(stage, rows, await startServer('servers/bare.ts'), scale, say);
  const database = await databaseVersion(stage);
  await stage.close();
  return { ...origin, pooler, database, rows: measured };
}

export function poolersSection({ at, machine, database, pooler, rows }: Poolers): string {
  const cells = (name: string) =>
    rows.filter((row) => row.name === name).flatMap(({ perSecond, p99 }) => [counts(perSecond), `${p99.median.toFixed(1)} ms`]);
  const lines = ways.map((way) => [way, ...cells(`place, ${way}`), ...cells(`cancel, ${way}`)]);
  return `${table(['', 'place, per second', 'p99', 'cancel, per second', 'p99'], lines)}
${formatDate(at)}, ${machine['processor']} with everything on it, ${machine['node']}, ${database}, ${pooler}: medians and ranges, with 64 connections of wrk.\n`;
}
