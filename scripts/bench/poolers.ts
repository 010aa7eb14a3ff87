import { startPgBouncer } from '../support/pgbouncer.ts';
import { databaseVersion, describeOrigin, openStage } from './environment.ts';
import { counts, formatDate, table } from './pages.ts';
import { run, startCore } from './processes.ts';
import { type Measured, measure } from './workloads.ts';
import { numbered, placing } from './wrk.ts';

const ways = ['no pooler', 'transaction mode', 'session mode'] as const;

/** What PgBouncer between a core and PostgreSQL costs. Each row is named after its operation and mode, such as `place, session mode`. */
type Poolers = Awaited<ReturnType<typeof poolers>>;

/** Measures cores on one PostgreSQL, each with ten connections: its own, or PgBouncer's. */
export async function poolers(rounds: number) {
  const { stdout } = await run('pgbouncer', ['--version']).catch(() => ({ stdout: '' }));
  const [pooler] = stdout.split('\n');
  if (!pooler) throw new Error('This needs PgBouncer: apt-get install pgbouncer.');
  const origin = await describeOrigin();
  const stage = await openStage('postgres');
  const rows: Measured[] = [];
  for (const way of ways) {
    const mode = way === 'session mode' ? 'session' : 'transaction';
    const through = way === 'no pooler' ? null : await startPgBouncer(stage.database, mode, 10);
    const at = { ...stage, core: through ? await startCore(through.url) : stage.core };
    rows.push({ name: `place, ${way}`, target: placing(at, stage.keys) });
    rows.push({ name: `cancel, ${way}`, target: numbered('cancel', at, stage.key) });
  }
  const measured = await measure(stage, rounds, rows);
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
