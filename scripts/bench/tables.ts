import type { Cores, Grown, Scope } from './comparisons.ts';
import type { Figure } from './figures.ts';
import type { Results } from './full.ts';
import { count, counts, databaseLabel, formatDate, missed, range, table, withRange } from './markdown.ts';
import type { Cpu } from './proc.ts';
import type { Spread } from './spread.ts';
import type { Row } from './workloads.ts';

/** Builds the sections of the pages that quote a full run, by section name. */
export function buildSections(results: Results): Record<string, string> {
  const { at, rows, figures, budget, cores, grown, minutes } = results;
  const of = (name: string, database: string, cell: (row: Row) => string) =>
    rows
      .filter((row) => row.name === name && row.database === database)
      .map(cell)
      .join();
  const perSecond = (row: Row) => count(row.perSecond.median);
  const ratio = (row: Row) => row.ratio.median.toFixed(2);
  const ofCore = rows.filter(({ name, database }) => database === 'postgres' && name !== 'bare Koa').map(({ name }) => name);
  const summary = ['place', 'cancel', 'refuse a revoked key'].map((name) => [
    name,
    ...['sqlite', 'postgres'].flatMap((database) => [of(name, database, perSecond), of(name, database, ratio)]),
  ]);
  return {
    summary: `${formatDate(at)}:\n\n${table(['', 'SQLite', 'of bare Koa', 'PostgreSQL', 'of bare Koa'], summary)}`,
    run: runText(results),
    rows: rowTable(rows),
    figures: figureTable(figures),
    cpu: cpuTable(rows),
    budget: budgetTable(budget, rows),
    minutes: table(
      ['part', 'minutes'],
      Object.entries(minutes).map(([part, taken]) => [part, taken.toFixed(1)]),
    ),
    throughput: table(
      ['per second', 'SQLite', 'PostgreSQL'],
      ofCore.map((name) => [name, of(name, 'sqlite', perSecond), of(name, 'postgres', perSecond)]),
    ),
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

export function rowTable(rows: readonly Row[]): string {
  return table(
    ['', 'database', 'of bare Koa', 'goal', 'range', 'per second', 'p99 (range)'],
    rows.map(({ name, database, goal, ratio, perSecond, p99 }) => [
      ...[name, databaseLabel(database), `**${ratio.median.toFixed(2)}**`],
      ...[goal === null ? '' : `≥ ${goal.toFixed(2)}${missed(ratio.median >= goal)}`, range(ratio)],
      ...[count(perSecond.median), `${p99.median.toFixed(1)} ms (${range(p99, 1)})`],
    ]),
  );
}

function figureTable(figures: readonly Figure[]): string {
  const lines = figures.map(({ name, database, goal, value, holds }) => [name, databaseLabel(database), `${goal}${missed(holds)}`, value]);
  return table(['', 'database', 'goal', 'measured'], lines);
}

function cpuTable(rows: readonly Row[]): string {
  const micros = (spread: Spread) => withRange(spread, 1);
  return table(
    ['CPU time per request, µs', 'database', 'main thread', 'rest of the process', 'PostgreSQL server'],
    rows.flatMap(({ name, database, cpu }) =>
      cpu ? [[name, databaseLabel(database), micros(cpu.main), micros(cpu.rest), cpu.postgres.median > 0 ? micros(cpu.postgres) : '']] : [],
    ),
  );
}

/** Builds a table whose lines show how much more each scope costs than the one before. */
function budgetTable(budget: readonly Scope[], rows: readonly Row[]): string {
  const onPostgres = rows.find(({ name, database }) => name === 'place' && database === 'postgres')?.cpu;
  const all = [...budget, ...(onPostgres && budget.length > 0 ? [{ name: 'on PostgreSQL instead', cpu: onPostgres }] : [])];
  const lines = all.map(({ name, cpu }, n) => {
    const added = (part: keyof Cpu) => (cpu[part].median - (all[n - 1]?.cpu[part].median ?? 0)).toFixed(1);
    return [name, added('main'), added('rest'), cpu.main.median.toFixed(1), range(cpu.main, 1)];
  });
  return table(['a placed call, µs', 'main thread', 'rest of the process', 'main thread, in total', 'range'], lines);
}

function growthTable(grown: readonly Grown[]): string {
  return table(
    ['keys, and as many calls', 'database', 'place', 'refuse an unknown key', 'cancel'],
    grown.map(({ size, database, place, refuse, cancel }) => [
      count(size),
      databaseLabel(database),
      ...[place, refuse, cancel].map(counts),
    ]),
  );
}

function coresTable(all: readonly Cores[]): string {
  return table(
    ['cores', 'placed calls per second', 'range', 'processors busy'],
    all.map(({ cores, perSecond: { median, min, max }, busy }) => [
      ...[String(cores), count(median), `${count(min)} to ${count(max)}`, `${Math.round(busy.median * 100)}%`],
    ]),
  );
}
