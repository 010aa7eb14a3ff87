import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { databaseKinds, freshDirectory, setUpPostgres } from '../../test/support/databases.ts';
import { measureBudget } from './budget.ts';
import { severalCores } from './cores.ts';
import { openStage, type Stage } from './environment.ts';
import { type Figure, growthShares, listShare, manyKeysShare, placeP99, twoCores } from './figures.ts';
import { type Grown, grow, type Lists, openFilled } from './growth.ts';
import { commitOf, databaseVersion, machineOf } from './machine.ts';
import { run, type Server, startServer } from './processes.ts';
import { verifying } from './requests.ts';
import type { Results } from './run-results.ts';
import type { Scale } from './scale.ts';
import * as single from './single-metrics.ts';
import { type Measured, measure, rowsOf } from './workloads.ts';

export type FullRun = { results: Omit<Results, 'otherLoad'>; plot: string };
type Say = (line: string) => void;

/** Everything, from start to end. Fails as a whole if any part fails. */
export async function runAll(scale: Scale, postgresSettings: readonly string[], say: Say): Promise<FullRun> {
  const at = new Date().toISOString();
  const minutes: Record<string, number> = {};
  const timed = async <Result>(part: string, work: () => Promise<Result>): Promise<Result> => {
    say(`${part} …`);
    const start = performance.now();
    const result = await work();
    minutes[part] = Math.round((performance.now() - start) / 600) / 100;
    say(`${part}: ${minutes[part]} minutes`);
    return result;
  };

  const machine = { ...(await machineOf()) };
  const commit = await commitOf();
  const draw = await timed('installing', installPeers);
  await setUpPostgres(postgresSettings);
  const bare = await startServer('servers/bare.ts');
  const parts = { rows: [], figures: [], budget: [], cores: [] } as Pick<Results, 'rows' | 'figures' | 'budget' | 'cores'>;
  parts.figures.push(await single.help(scale.starts));
  // One after the other: what a database tidies up must not fall into the other's rounds.
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    machine[kind] = await databaseVersion(stage);
    parts.rows.push(...(await timed(`rows, ${kind}`, () => rowsAt(stage, bare, scale, say))));
    parts.figures.push(...single.memory(stage), placeP99(parts.rows, kind), ...manyKeysShare(parts.rows, kind));
    parts.figures.push(...(await timed(`figures, ${kind}`, () => figuresAt(stage, bare, scale))));
    if (kind === 'sqlite') parts.budget = await timed('budget', () => measureBudget(stage, scale));
    else parts.cores = await timed('cores', () => severalCores(stage, scale));
    await stage.close();
  }
  const { grown, lists } = await growth(scale, timed, say);
  parts.figures.push(...twoCores(parts.cores), ...lists.map(listShare), ...databaseKinds.flatMap((kind) => growthShares(grown, kind)));
  const settings = postgresSettings.join(', ');
  return {
    results: { at, commit, machine: { ...machine, settings }, rounds: scale.rounds, minutes, ...parts, grown, lists },
    plot: draw(grown),
  };
}

async function rowsAt(stage: Stage, bare: Server, scale: Scale, say: Say) {
  const straightforward = await startServer('servers/straightforward.ts', { DATABASE_URL: stage.database });
  const peer = stage.kind === 'sqlite' ? await betterAuth() : undefined;
  const rows = await measure(stage, [...rowsOf(stage, straightforward), ...(peer ? [peer] : [])], bare, scale, say);
  await straightforward.stop();
  await peer?.server.stop();
  return rows;
}

async function betterAuth(): Promise<Measured> {
  const server = await startServer('competitors/better-auth.ts', { DATABASE_FILE: join(freshDirectory(), 'peer.db') });
  return {
    name: 'better-auth, verify a key and note its use',
    goal: null,
    server,
    target: verifying(server.url, String(server.said['key'])),
  };
}

async function figuresAt(stage: Stage, bare: Server, scale: Scale): Promise<Figure[]> {
  return [
    await single.loneClient(stage, bare, scale),
    await single.start(stage, scale.starts),
    ...(await single.signInFlood(stage, scale)),
  ];
}

async function growth(scale: Scale, timed: <Result>(part: string, work: () => Promise<Result>) => Promise<Result>, say: Say) {
  const all = { grown: [] as Grown[], lists: [] as Lists[] };
  const filled = await timed('filling', () => Promise.all(databaseKinds.map((kind) => openFilled(kind, scale, say))));
  for (const one of filled) {
    const { grown, lists } = await timed(`growth, ${one[0]?.stage.kind}`, () => grow(one, scale, say));
    all.grown.push(...grown);
    all.lists.push(...lists);
  }
  return all;
}

/** In the versions of their own lock file. @returns what draws the plot */
async function installPeers(): Promise<(grown: readonly Grown[]) => string> {
  const folder = fileURLToPath(new URL('competitors', import.meta.url));
  const { error } = await run('npm', ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund']);
  if (error) throw error;
  // From a folder with packages of its own, which the types of this one know nothing of.
  const { plot }: { plot: (grown: readonly Grown[]) => string } = await import(new URL('competitors/plot.ts', import.meta.url).href);
  return plot;
}
