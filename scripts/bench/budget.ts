import type { ServerProcess } from '../support/server-process.ts';
import type { Stage } from './environment.ts';
import { range, table } from './pages.ts';
import { hasProc } from './proc.ts';
import { startServer } from './processes.ts';
import { inTurn } from './spread.ts';
import type { Row } from './workloads.ts';
import { load, placing } from './wrk.ts';

/** The CPU time per request of a server that does part of the core's work. Each scope includes the one before it. */
export type Scope = { name: string; cpu: NonNullable<Row['cpu']> };

/** The work that each scope adds, and the value of SCOPE that `servers/scope.ts` accepts. */
const scopes = {
  'HTTP: node:http responds immediately': 'http',
  Koa: 'koa',
  'body: read and parsed': 'body',
  'key: its format and digest': 'key',
  'schema: the body is validated': 'schema',
  'response: routes, request ID, metrics, and writing it': 'core',
};

/** Measures the scopes in turn, and finally the whole core. Returns nothing if the system doesn't report CPU times. */
export async function measureBudget(stage: Stage, rounds: number): Promise<Scope[]> {
  if (!hasProc) return [];
  const partial: Record<string, ServerProcess> = {};
  for (const [name, SCOPE] of Object.entries(scopes))
    partial[name] = await startServer('servers/scope.ts', { SCOPE, DATABASE_URL: stage.database });
  const servers = { ...partial, 'database: batches, statement and client': stage.core };
  const measured = await inTurn(servers, rounds, (core) => load(placing({ ...stage, core }, stage.keys)));
  for (const server of Object.values(partial)) await server.stop();
  return Object.entries(measured).map(([name, { main, rest, postgres }]) => ({ name, cpu: { main, rest, postgres } }));
}

/** Builds a table whose lines show how much more each scope costs than the one before. */
export function budgetTable(budget: readonly Scope[], rows: readonly Row[]): string {
  const onPostgres = rows.find(({ name, database }) => name === 'place' && database === 'postgres')?.cpu;
  const all = [...budget, ...(onPostgres && budget.length > 0 ? [{ name: 'on PostgreSQL instead', cpu: onPostgres }] : [])];
  const lines = all.map(({ name, cpu }, n) => {
    const added = (part: 'main' | 'rest') => (cpu[part].median - (all[n - 1]?.cpu[part].median ?? 0)).toFixed(1);
    return [name, added('main'), added('rest'), cpu.main.median.toFixed(1), range(cpu.main, 1)];
  });
  return table(['a placed call, µs', 'main thread', 'rest of the process', 'main thread, in total', 'range'], lines);
}
