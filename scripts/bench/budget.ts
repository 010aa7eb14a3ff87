import { type CostedLoad, type Cpu, cpuSpreadOf, loadWithCpu } from './cpu.ts';
import type { Stage } from './environment.ts';
import { type Server, startServer } from './processes.ts';
import { placing } from './requests.ts';
import type { Scale } from './scale.ts';
import type { Spread } from './spread.ts';
import { load } from './wrk.ts';

/** What a request costs a server that does so much of the core's work. Each scope has all of the one before it. */
export type Scope = { name: string; cpu: Cpu<Spread> };

/** The values of SCOPE that `servers/scope.ts` knows, each with what it adds. */
const scopes = {
  http: 'HTTP: node:http answers at once',
  koa: 'Koa',
  body: 'body: read and parsed',
  key: 'key: its form and digest',
  schema: 'schema of the body',
  core: 'answer: routes, request id, metrics, the answer itself',
};

/** The scopes, measured in turn, and last the whole core. Empty where the system does not tell of CPU times. */
export async function measureBudget(stage: Stage, { rounds, seconds, warmUp }: Scale): Promise<Scope[]> {
  const servers: { name: string; server: Server; loads: CostedLoad[] }[] = [];
  for (const [scope, name] of Object.entries(scopes)) {
    servers.push({ name, server: await startServer('servers/scope.ts', { SCOPE: scope, DATABASE_URL: stage.database }), loads: [] });
  }
  const measured = [...servers, { name: 'statement: batches, and the database client', server: stage.core, loads: [] as CostedLoad[] }];
  const target = ({ url }: Server) => placing(url, stage.path, stage.keys);
  for (const { server } of measured) await load(target(server), warmUp);
  for (let round = 0; round < rounds; round++) {
    for (const { server, loads } of measured)
      loads.push(await loadWithCpu(target(server), seconds, { pid: server.pid, postgres: stage.postgres }));
  }
  for (const { server } of servers) await server.stop();
  return measured.flatMap(({ name, loads }) => {
    const cpu = cpuSpreadOf(loads);
    return cpu ? [{ name, cpu }] : [];
  });
}
