import type { Stage } from './environment.ts';
import { range, table } from './markdown.ts';
import { type Cpu, computeCpuSpread, hasProc, loadWithCpu } from './proc.ts';
import { startServer } from './processes.ts';
import { placing } from './requests.ts';
import { inTurn, type Spread } from './spread.ts';
import type { Row, Scale } from './workloads.ts';
import { load } from './wrk.ts';

/** The CPU time per request of a server that does part of the core's work. Each scope includes the one before it. */
export type Scope = { name: string; cpu: Cpu<Spread> };

/** The values of SCOPE that `servers/scope.ts` accepts, and the work that each one adds. */
const scopes = {
  http: 'HTTP: node:http responds immediately',
  koa: 'Koa',
  body: 'body: read and parsed',
  key: 'key: its format and digest',
  schema: 'schema: the body is validated',
  core: 'response: routes, request ID, metrics, and writing it',
};

/** Measures the scopes in turn, and finally the whole core. Returns nothing if the system doesn't report CPU times. */
export async function measureBudget(stage: Stage, { rounds, seconds, warmUp }: Scale): Promise<Scope[]> {
  if (!hasProc) return [];
  const partial = await Promise.all(
    Object.entries(scopes).map(async ([scope, name]) => {
      return { name, server: await startServer('servers/scope.ts', { SCOPE: scope, DATABASE_URL: stage.database }) };
    }),
  );
  const scoped = [...partial, { name: 'database: batches, statement and client', server: stage.core }];
  const target = (url: string) => placing(url, stage.path, stage.keys);
  for (const { server } of scoped) await load(target(server.url), warmUp);
  const all = await inTurn(scoped, rounds, ({ server: { url, pid } }) =>
    loadWithCpu(target(url), seconds, { pid, postgres: stage.postgres }),
  );
  for (const { server } of partial) await server.stop();
  return all.flatMap(({ item: { name }, results }) => {
    const cpu = computeCpuSpread(results);
    return cpu ? [{ name, cpu }] : [];
  });
}

/** Builds a table whose lines show how much more each scope costs than the one before. */
export function budgetTable(budget: readonly Scope[], rows: readonly Row[]): string {
  const onPostgres = rows.find(({ name, database }) => name === 'place' && database === 'postgres')?.cpu;
  const all = [...budget, ...(onPostgres && budget.length > 0 ? [{ name: 'on PostgreSQL instead', cpu: onPostgres }] : [])];
  const lines = all.map(({ name, cpu }, n) => {
    const added = (part: keyof Cpu) => (cpu[part].median - (all[n - 1]?.cpu[part].median ?? 0)).toFixed(1);
    return [name, added('main'), added('rest'), cpu.main.median.toFixed(1), range(cpu.main, 1)];
  });
  return table(['a placed call, µs', 'main thread', 'rest of the process', 'main thread, in total', 'range'], lines);
}
