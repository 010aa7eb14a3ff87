import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { databaseVersion, describeOrigin, openStage } from './environment.ts';
import { type Figures, figureSections, grow, measureFigures, measureHelp, measureSeveralCores, type Sizes } from './figures.ts';
import { count, formatDate, reaches, table } from './pages.ts';
import type { OtherLoad } from './proc.ts';
import { databaseKinds, freshFolder, postgresSettings, run, startServer } from './processes.ts';
import { budgetTable, cpuTable, measureBudget, measureRows, type Row, rowTable, type Scope } from './workloads.ts';
import { getting } from './wrk.ts';

/** The results of a full run, and the highest load that other programs caused for half a minute. */
export type Results = Awaited<ReturnType<typeof runAll>> & { otherLoad: OtherLoad };

/** Runs all measurements. If one of them fails, the whole run fails, without results. */
export async function runAll(rounds: number, sizes: Sizes) {
  const { machine, ...origin } = await describeOrigin();
  // The competitors have a lock file of their own.
  const competitors = fileURLToPath(new URL('competitors', import.meta.url));
  await run('npm', ['ci', '--prefix', competitors, '--ignore-scripts', '--no-audit', '--no-fund']);
  const { figures, cores, grown }: Figures = { figures: [await measureHelp(rounds)], cores: [], grown: [] };
  const [rows, budget]: [Row[], Scope[]] = [[], []];
  // Measures one database after the other, so that the cleanup of the first one doesn't slow down the rounds of the second.
  for (const kind of databaseKinds) {
    await using stage = await openStage(kind);
    machine[kind] = await databaseVersion(stage);
    const peer = kind === 'sqlite' && (await startServer('competitors/better-auth.ts', { DATABASE_FILE: join(freshFolder(), 'peer.db') }));
    const peers = peer && { 'better-auth, verify a key and record its use': getting(peer, String(peer.startLine['key'])) };
    const measured = await measureRows(stage, rounds, { ...peers });
    if (peer) await peer.stop();
    rows.push(...measured);
    figures.push(...(await measureFigures(stage, measured, rounds)));
    if (kind === 'sqlite') budget.push(...(await measureBudget(stage, rounds)));
    else {
      const several = await measureSeveralCores(stage, rounds);
      cores.push(...several.cores);
      figures.push(...several.figures);
    }
  }
  for (const kind of databaseKinds) {
    const growth = await grow(kind, sizes, rounds);
    grown.push(...growth.grown);
    figures.push(...growth.figures);
  }
  return { ...origin, machine: { ...machine, settings: postgresSettings.join(', ') }, rounds, rows, figures, budget, cores, grown };
}

/** Builds the sections of the pages that quote a full run, by section name. */
export function buildSections(results: Results): Record<string, string> {
  const { at, rows, budget } = results;
  const cells = (name: string, ...formats: ((row: Row) => string)[]) =>
    databaseKinds
      .flatMap((kind) => rows.filter((row) => row.name === name && row.database === kind))
      .flatMap((row) => formats.map((format) => format(row)));
  const perSecond = ({ perSecond }: Row) => count(perSecond.median);
  const share = ({ ratio }: Row) => ratio.median.toFixed(2);
  const summary = ['place', 'cancel', 'refuse a revoked key'].map((name) => [name, ...cells(name, perSecond, share)]);
  const ofCore = rows.filter(({ name, database }) => database === 'postgres' && name !== 'bare Koa').map(({ name }) => name);
  return {
    summary: `${formatDate(at)}:\n\n${table(['', 'SQLite', 'share of bare Koa', 'PostgreSQL', 'share of bare Koa'], summary)}`,
    run: runText(results),
    ...figureSections(results),
    rows: rowTable(rows),
    cpu: cpuTable(rows),
    budget: budgetTable(budget, rows),
    throughput: table(
      ['per second', 'SQLite', 'PostgreSQL'],
      ofCore.map((name) => [name, ...cells(name, perSecond)]),
    ),
  };
}

function runText({ at, commit, machine, rounds, otherLoad, rows, figures }: Results): string {
  const measured = [...rows.map(({ goal, ratio }) => ({ goal, spread: ratio })), ...figures].filter(({ goal }) => goal !== '');
  const reached = measured.filter(({ goal, spread }) => reaches(goal, spread.median)).length;
  return `${formatDate(at)}, commit ${commit}, ${rounds} rounds: ${Object.values(machine).join(', ')}.
Other programs used at most ${otherLoad.others.toFixed(2)} of a processor, and the host's other virtual machines at most ${otherLoad.stolen.toFixed(2)} (each the lower of two consecutive 15-second averages).
Of ${measured.length} goals, ${reached} are reached, and ${measured.length - reached} are missed.\n`;
}
