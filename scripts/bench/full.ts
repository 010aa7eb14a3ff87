import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { budgetTable, measureBudget, type Scope } from './budget.ts';
import { type Cores, compareTwoCores, coresTable, measureSeveralCores } from './cores.ts';
import { databaseKinds, databaseVersion, describeOrigin, type Origin, openStage, postgresSettings } from './environment.ts';
import {
  deriveFigures,
  type Figure,
  figureTable,
  measureHelp,
  measureLoneClient,
  measureMemory,
  measureSignInFlood,
  start,
} from './figures.ts';
import { compareLists, compareSizes, type Grown, grow, growthTable, type Lists, openFilled } from './growth.ts';
import type { OtherLoad } from './load-guard.ts';
import { count, formatDate, table, tableOf } from './markdown.ts';
import { freshFolder, run, startServer } from './processes.ts';
import { getting } from './requests.ts';
import { cpuTable, type Measured, measureRows, type Row, rowTable, type Say, type Scale } from './workloads.ts';

/** The results of a full run. */
export type Results = Origin & {
  rounds: number;
  /** The highest other load during half a minute. */
  otherLoad: OtherLoad;
  /** How long each part took. */
  minutes: Record<string, number>;
  rows: Row[];
  figures: Figure[];
  budget: Scope[];
  cores: Cores[];
  grown: Grown[];
  lists: Lists[];
};

/** Runs all parts. Fails as a whole if any part fails. */
export async function runAll(scale: Scale, say: Say): Promise<Omit<Results, 'otherLoad'>> {
  const { machine, ...origin } = await describeOrigin();
  const minutes: Record<string, number> = {};
  const timed = async <Result>(part: string, work: () => Promise<Result>): Promise<Result> => {
    say(`${part} …`);
    const from = performance.now();
    const result = await work();
    minutes[part] = Math.round((performance.now() - from) / 600) / 100;
    say(`${part}: ${minutes[part]} minutes`);
    return result;
  };

  await timed('installing', installPeers);
  const bare = await startServer('servers/bare.ts');
  const rows: Row[] = [];
  const figures = [await measureHelp(scale)];
  let [budget, cores]: [Scope[], Cores[]] = [[], []];
  // Measures one database after the other, so that the cleanup of one doesn't slow down the rounds of the other.
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    machine[kind] = await databaseVersion(stage);
    const peers = kind === 'sqlite' ? [await betterAuth()] : [];
    rows.push(...(await timed(`rows, ${kind}`, () => measureRows(stage, bare, scale, say, peers))));
    figures.push(...measureMemory(stage), ...deriveFigures(rows, kind));
    const measureFigures = async () => [
      await measureLoneClient(stage, bare, scale),
      await start(stage, scale),
      ...(await measureSignInFlood(stage, scale)),
    ];
    figures.push(...(await timed(`figures, ${kind}`, measureFigures)));
    if (kind === 'sqlite') budget = await timed('budget', () => measureBudget(stage, scale));
    else cores = await timed('cores', () => measureSeveralCores(stage, scale));
    await stage.close();
  }
  const filled = await timed('filling', () => Promise.all(databaseKinds.map((kind) => openFilled(kind, scale, say))));
  const [grown, lists]: [Grown[], Lists[]] = [[], []];
  for (const stages of filled) {
    const result = await timed(`growth, ${stages[0]?.kind}`, () => grow(stages, scale, say));
    grown.push(...result.grown);
    lists.push(...result.lists);
  }
  figures.push(...compareTwoCores(cores), ...lists.map(compareLists), ...databaseKinds.flatMap((kind) => compareSizes(grown, kind)));
  const about = { ...origin, machine: { ...machine, settings: postgresSettings.join(', ') }, rounds: scale.rounds, minutes };
  return { ...about, rows, figures, budget, cores, grown, lists };
}

async function betterAuth(): Promise<Measured> {
  const server = await startServer('competitors/better-auth.ts', { DATABASE_FILE: join(freshFolder(), 'peer.db') });
  return { name: 'better-auth, verify a key and record its use', server, target: getting(server.url, String(server.startLine['key'])) };
}

/** Installs the competitors at the versions in their own lock file. */
async function installPeers(): Promise<void> {
  const folder = fileURLToPath(new URL('competitors', import.meta.url));
  const { error } = await run('npm', ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund']);
  if (error) throw error;
}

/** Builds the sections of the pages that quote a full run, by section name. */
export function buildSections(results: Results): Record<string, string> {
  const { at, rows, figures, budget, cores, grown, minutes } = results;
  const of = (name: string, database: string) => rows.filter((row) => row.name === name && row.database === database);
  const perSecond = (name: string, database: string) =>
    of(name, database)
      .map((row) => count(row.perSecond.median))
      .join();
  const ratio = (name: string, database: string) =>
    of(name, database)
      .map((row) => row.ratio.median.toFixed(2))
      .join();
  const ofCore = rows.filter(({ name, database }) => database === 'postgres' && name !== 'bare Koa').map(({ name }) => name);
  const summary = ['place', 'cancel', 'refuse a revoked key'].map((name) => [
    name,
    ...databaseKinds.flatMap((kind) => [perSecond(name, kind), ratio(name, kind)]),
  ]);
  return {
    summary: `${formatDate(at)}:\n\n${table(['', 'SQLite', 'share of bare Koa', 'PostgreSQL', 'share of bare Koa'], summary)}`,
    run: runText(results),
    rows: rowTable(rows),
    figures: figureTable(figures),
    cpu: cpuTable(rows),
    budget: budgetTable(budget, rows),
    minutes: tableOf(Object.entries(minutes), { part: ([part]) => part, minutes: ([, taken]) => taken.toFixed(1) }),
    throughput: tableOf(ofCore, {
      'per second': (name) => name,
      SQLite: (name) => perSecond(name, 'sqlite'),
      PostgreSQL: (name) => perSecond(name, 'postgres'),
    }),
    growth: growthTable(grown),
    cores: coresTable(cores),
  };
}

function runText({ at, commit, machine, rounds, otherLoad, rows, figures }: Results): string {
  const goals = [...rows.flatMap(({ goal, ratio }) => (goal === null ? [] : [ratio.median >= goal])), ...figures.map(({ holds }) => holds)];
  const [reached, out, unknown] = [true, false, null].map((value) => goals.filter((holds) => holds === value).length);
  return `${formatDate(at)}, commit ${commit}, ${rounds} rounds: ${Object.values(machine).join(', ')}.
Other work took at most ${otherLoad.others.toFixed(2)} of a processor for half a minute, and other virtual machines of the host ${otherLoad.stolen.toFixed(2)}.
Of ${goals.length} goals, ${reached} are reached, ${out} are missed, and ${unknown} can't be decided on this machine.\n`;
}
