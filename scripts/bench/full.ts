import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { budgetTable, measureBudget, type Scope } from './budget.ts';
import { type Cores, compareTwoCores, coresTable, measureSeveralCores } from './cores.ts';
import { databaseVersion, describeOrigin, openStage } from './environment.ts';
import {
  deriveFigures,
  type Figure,
  figureTable,
  measureHelp,
  measureLoneClient,
  measureMemory,
  measureSignInFlood,
  measureStart,
} from './figures.ts';
import { compareLists, compareSizes, type Grown, grow, growthTable, type Lists, listKeys, openFilled } from './growth.ts';
import type { OtherLoad } from './load-guard.ts';
import { count, formatDate, table, tableOf } from './pages.ts';
import { databaseKinds, freshFolder, postgresSettings, run, startServer } from './processes.ts';
import { say, timed } from './spread.ts';
import { cpuTable, measureRows, type Row, rowTable } from './workloads.ts';
import { getting } from './wrk.ts';

/** The results of a full run, with the highest other load during half a minute. */
export type Results = Awaited<ReturnType<typeof runAll>> & { otherLoad: OtherLoad };

/**
 * Runs all parts. Fails as a whole if any part fails.
 *
 * @param sizes how many keys, and how many calls, are in the tables: in the smallest, in those whose lists are measured, and in the largest
 */
export async function runAll(rounds: number, sizes: readonly number[]) {
  const { machine, ...origin } = await describeOrigin();
  /** How long each part took. */
  const minutes: Record<string, number> = {};
  const part = async <Result>(name: string, work: () => Promise<Result>): Promise<Result> => {
    say(`${name} …`);
    const { result, ms } = await timed(work);
    minutes[name] = Math.round(ms / 600) / 100;
    return result;
  };
  const [rows, figures, budget, cores, grown, lists]: [Row[], Figure[], Scope[], Cores[], Grown[], Lists[]] = [[], [], [], [], [], []];

  // The competitors have a lock file of their own.
  const competitors = fileURLToPath(new URL('competitors', import.meta.url));
  await part('installing', () => run('npm', ['ci', '--prefix', competitors, '--ignore-scripts', '--no-audit', '--no-fund']));
  figures.push(await measureHelp(rounds));
  // Measures one database after the other, so that the cleanup of one doesn't slow down the rounds of the other.
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    machine[kind] = await databaseVersion(stage);
    const peers =
      kind === 'sqlite' ? [await startServer('competitors/better-auth.ts', { DATABASE_FILE: join(freshFolder(), 'peer.db') })] : [];
    const peerRows = peers.map((server) => {
      return { name: 'better-auth, verify a key and record its use', target: getting(server, String(server.startLine['key'])) };
    });
    const measured = await part(`rows, ${kind}`, () => measureRows(stage, rounds, peerRows));
    rows.push(...measured);
    for (const server of peers) await server.stop();
    figures.push(...measureMemory(stage), ...deriveFigures(measured));
    await part(`figures, ${kind}`, async () => {
      figures.push(await measureLoneClient(stage, rounds), await measureStart(stage, rounds), ...(await measureSignInFlood(stage, rounds)));
    });
    if (kind === 'sqlite') budget.push(...(await part('budget', () => measureBudget(stage, rounds))));
    else cores.push(...(await part('cores', () => measureSeveralCores(stage, rounds))));
    await stage.close();
  }
  const filled = await part('filling', () => Promise.all(databaseKinds.map((kind) => openFilled(kind, sizes, rounds))));
  for (const [n, kind] of databaseKinds.entries())
    await part(`growth, ${kind}`, async () => {
      const stages = filled[n] ?? {};
      grown.push(...(await grow(kind, stages, rounds)));
      for (const stage of Object.values(stages).slice(1, 2)) lists.push(await listKeys(stage, rounds));
      for (const stage of Object.values(stages)) await stage.close();
    });
  figures.push(...compareTwoCores(cores), ...lists.map(compareLists), ...databaseKinds.flatMap((kind) => compareSizes(grown, kind)));
  const settings = postgresSettings.join(', ');
  return { ...origin, machine: { ...machine, settings }, rounds, minutes, rows, figures, budget, cores, grown, lists };
}

/** Builds the sections of the pages that quote a full run, by section name. */
export function buildSections(results: Results): Record<string, string> {
  const { at, rows, figures, budget, cores, grown, minutes } = results;
  const cell = (name: string, database: string, format: (row: Row) => string) =>
    rows
      .filter((row) => row.name === name && row.database === database)
      .map(format)
      .join();
  const perSecond = ({ perSecond }: Row) => count(perSecond.median);
  const share = ({ ratio }: Row) => ratio.median.toFixed(2);
  const cells = (name: string, ...formats: ((row: Row) => string)[]) =>
    databaseKinds.flatMap((kind) => formats.map((format) => cell(name, kind, format)));
  const summary = ['place', 'cancel', 'refuse a revoked key'].map((name) => [name, ...cells(name, perSecond, share)]);
  const ofCore = rows.filter(({ name, database }) => database === 'postgres' && name !== 'bare Koa').map(({ name }) => name);
  return {
    summary: `${formatDate(at)}:\n\n${table(['', 'SQLite', 'share of bare Koa', 'PostgreSQL', 'share of bare Koa'], summary)}`,
    run: runText(results),
    rows: rowTable(rows),
    figures: figureTable(figures),
    cpu: cpuTable(rows),
    budget: budgetTable(budget, rows),
    minutes: tableOf(Object.entries(minutes), { part: ([part]) => part, minutes: ([, taken]) => taken.toFixed(1) }),
    throughput: table(
      ['per second', 'SQLite', 'PostgreSQL'],
      ofCore.map((name) => [name, ...cells(name, perSecond)]),
    ),
    growth: growthTable(grown),
    cores: coresTable(cores),
  };
}

function runText({ at, commit, machine, rounds, otherLoad, rows, figures }: Results): string {
  const goals = [...rows.flatMap(({ goal, ratio }) => (goal === null ? [] : [ratio.median >= goal])), ...figures.map(({ holds }) => holds)];
  const [reached, out, unknown] = [true, false, null].map((value) => goals.filter((holds) => holds === value).length);
  return `${formatDate(at)}, commit ${commit}, ${rounds} rounds: ${Object.values(machine).join(', ')}.
Other programs used at most ${otherLoad.others.toFixed(2)} of a processor, and the host's other virtual machines at most ${otherLoad.stolen.toFixed(2)} (each the lower of two consecutive 15-second averages).
Of ${goals.length} goals, ${reached} are reached, ${out} are missed, and ${unknown} can't be decided on this machine.\n`;
}
