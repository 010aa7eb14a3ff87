import type { Scope } from './budget.ts';
import type { Cores } from './cores.ts';
import type { Cpu } from './cpu.ts';
import type { Figure } from './figures.ts';
import type { Grown } from './growth.ts';
import type { LongFile } from './long-file.ts';
import { operations, type Poolers, ways } from './poolers.ts';
import type { Results } from './run-results.ts';
import type { Soak } from './soak.ts';
import type { Spread } from './spread.ts';
import { type Row, thousandKeys } from './workloads.ts';

const names: Readonly<Record<string, string>> = { sqlite: 'SQLite', postgres: 'PostgreSQL' };
const nameOf = (database: string) => names[database] ?? '';
const thousands = (value: number) => Math.round(value).toLocaleString('en');
const whole = ({ median }: Spread) => thousands(median);
const wholeRange = ({ min, max }: Spread) => `${thousands(min)} to ${thousands(max)}`;
const range = ({ min, max }: Spread, digits = 2) => `${min.toFixed(digits)} to ${max.toFixed(digits)}`;
const missed = (holds: boolean | null) => (holds === null ? ', cannot be told here' : holds ? '' : ', **missed**');

/** What the pages quote of a full run, by the names of their marks. */
export function sectionsOf(results: Results): Record<string, string> {
  const { rows, figures, budget, cores, grown } = results;
  return {
    summary: `${dateOf(results.at)}:\n\n${summaryTable(rows)}`,
    run: runText(results),
    rows: rowTable(rows),
    figures: figureTable(figures),
    cpu: cpuTable(rows),
    budget: budgetTable(budget, rows),
    minutes: table(
      ['part', 'minutes'],
      Object.entries(results.minutes).map(([part, taken]) => [part, taken.toFixed(1)]),
    ),
    throughput: throughputTable(rows),
    growth: growthTable(grown),
    cores: coresTable(cores),
  };
}

/** For the terminal. */
export function printed(results: Results): string {
  return Object.values(sectionsOf(results)).join('\n');
}

function runText({ at, commit, machine, rounds, otherLoad, rows, figures }: Results): string {
  const goals = [...rows.flatMap(({ goal, ratio }) => (goal === null ? [] : [ratio.median >= goal])), ...figures.map(({ holds }) => holds)];
  const count = (wanted: boolean | null) => goals.filter((holds) => holds === wanted).length;
  return `${dateOf(at)}, commit ${commit}, ${rounds} rounds: ${Object.values(machine).join(', ')}.
Other work took at most ${otherLoad.others.toFixed(2)} of a processor for half a minute, and other virtual machines of the host ${otherLoad.stolen.toFixed(2)}.
Of ${goals.length} goals, ${count(true)} are reached, ${count(false)} are missed, and ${count(null)} cannot be told on this machine.\n`;
}

function dateOf(at: string): string {
  return new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });
}

export function rowTable(rows: readonly Row[]): string {
  return table(
    ['', 'database', 'of bare Koa', 'goal', 'range', 'a second', 'p99 (range)'],
    rows.map(({ name, database, goal, ratio, perSecond, p99 }) => [
      ...[name, nameOf(database), `**${ratio.median.toFixed(2)}**`],
      ...[goal === null ? '' : `≥ ${goal.toFixed(2)}${missed(ratio.median >= goal)}`, range(ratio)],
      ...[whole(perSecond), `${p99.median.toFixed(1)} ms (${range(p99, 1)})`],
    ]),
  );
}

function figureTable(figures: readonly Figure[]): string {
  return table(
    ['', 'database', 'goal', 'measured'],
    figures.map(({ name, database, goal, value, holds }) => [name, nameOf(database), `${goal}${missed(holds)}`, value]),
  );
}

/** The rows of both databases side by side. */
function summaryTable(rows: readonly Row[]): string {
  const of = (name: string, database: string) => {
    const row = rows.find((one) => one.name === name && one.database === database);
    return row ? [whole(row.perSecond), row.ratio.median.toFixed(2)] : ['', ''];
  };
  return table(
    ['', 'SQLite', 'of bare Koa', 'PostgreSQL', 'of bare Koa'],
    ['place', 'cancel', 'refuse a revoked key'].map((name) => [name, ...of(name, 'sqlite'), ...of(name, 'postgres')]),
  );
}

function throughputTable(rows: readonly Row[]): string {
  const ofCore = [
    'place',
    thousandKeys,
    'refuse a malformed key',
    'refuse an unknown key',
    'refuse a revoked key',
    'cancel',
    'place, straightforward',
  ];
  const of = (name: string, database: string) => rows.filter((row) => row.name === name && row.database === database);
  return table(
    ['a second', 'SQLite', 'PostgreSQL'],
    ofCore.map((name) => [
      name,
      ...['sqlite', 'postgres'].map((database) =>
        of(name, database)
          .map(({ perSecond }) => whole(perSecond))
          .join(),
      ),
    ]),
  );
}

const micros = (cpu: Cpu<Spread>, part: keyof Cpu) => `${cpu[part].median.toFixed(1)} (${range(cpu[part], 1)})`;

function cpuTable(rows: readonly Row[]): string {
  return table(
    ['CPU time a request, µs', 'database', 'main thread', 'rest of the process', 'PostgreSQL server'],
    rows.flatMap(({ name, database, cpu }) =>
      cpu
        ? [[name, nameOf(database), micros(cpu, 'main'), micros(cpu, 'rest'), cpu.postgres.median > 0 ? micros(cpu, 'postgres') : '']]
        : [],
    ),
  );
}

/** Each line is what its scope costs more than the one before. */
function budgetTable(budget: readonly Scope[], rows: readonly Row[]): string {
  const lines = budget.map(({ name, cpu }, n) => {
    const before = budget[n - 1]?.cpu;
    const added = (part: 'main' | 'rest') => (cpu[part].median - (before?.[part].median ?? 0)).toFixed(1);
    return [name, added('main'), added('rest'), cpu.main.median.toFixed(1), range(cpu.main, 1)];
  });
  const place = rows.find(({ name, database }) => name === 'place' && database === 'postgres')?.cpu;
  const last = budget.at(-1)?.cpu;
  if (place && last) {
    const more = (part: 'main' | 'rest') => (place[part].median - last[part].median).toFixed(1);
    lines.push(['on PostgreSQL instead', more('main'), more('rest'), place.main.median.toFixed(1), range(place.main, 1)]);
  }
  return table(['a placed call, µs', 'main thread', 'rest of the process', 'main thread, up to here', 'range'], lines);
}

function growthTable(grown: readonly Grown[]): string {
  const each = ({ place, refuse, cancel }: Grown) => [place, refuse, cancel].map((spread) => `${whole(spread)} (${wholeRange(spread)})`);
  return table(
    ['keys, and as many calls', 'database', 'place', 'refuse an unknown key', 'cancel'],
    grown.map((row) => [row.size.toLocaleString('en'), nameOf(row.database), ...each(row)]),
  );
}

function coresTable(cores: readonly Cores[]): string {
  return table(
    ['cores', 'placed calls a second', 'range', 'processors busy'],
    cores.map(({ cores: count, perSecond, busy }) => [
      String(count),
      whole(perSecond),
      wholeRange(perSecond),
      `${Math.round(busy.median * 100)} %`,
    ]),
  );
}

export function soakSection({ at, commit, database, minutes, memory, otherLoad }: Soak): string {
  const { slope, min, max, most, isFlat, warmUpMinutes } = memory;
  const median = (of: (one: Soak['minutes'][number]) => number) =>
    minutes.map(of).toSorted((one, other) => one - other)[Math.floor(minutes.length / 2)] ?? Number.NaN;
  return `${nameOf(database)}, ${dateOf(at)}, commit ${commit}: ${minutes.length} minutes of placing, cancelling and refusing at ${Math.round(median(({ perSecond }) => perSecond)).toLocaleString('en')} requests a second.
Memory ${isFlat ? 'is flat' : 'is **not flat**'}: after ${warmUpMinutes} minutes it grows by ${slope.toFixed(1)} MB an hour (${min.toFixed(1)} to ${max.toFixed(1)}), and it is never more than ${most.toFixed(0)} MB (goal: < 200 MB${missed(most < 200)}).
p99 ${median(({ p99 }) => p99).toFixed(1)} ms; ${minutes.at(-1)?.files} open files at the end; other work took at most ${otherLoad.others.toFixed(2)} of a processor.\n`;
}

export function longFileSection({ at, machine, lines, megabytes, runs, firstCall }: LongFile): string {
  const most = Math.max(...runs.map(({ memory }) => memory));
  const rows = runs.map(({ what, memory, seconds }) => [what, `${memory.toFixed(0)} MB`, `${seconds.toFixed(0)} s`]);
  return `${table([`a file of ${thousands(lines)} lines, ${megabytes.toFixed(0)} MB`, 'memory, at most', 'processor time'], rows)}
${dateOf(at)}, ${machine['processor']}, ${machine['node']}, with the core beside it: never more than ${most.toFixed(0)} MB (goal: < 200 MB${missed(most < 200)}).
The first call was placed ${(firstCall / 1_000).toFixed(2)} s after the check (goal: ≤ 2 s${missed(firstCall <= 2_000)}).\n`;
}

export function poolersSection({ at, machine, database, pooler, rows }: Poolers): string {
  const cells = (way: string) =>
    operations.flatMap((operation) => {
      const row = rows.find(({ name }) => name === `${operation}, ${way}`);
      return row ? [`${whole(row.perSecond)} (${wholeRange(row.perSecond)})`, `${row.p99.median.toFixed(1)} ms`] : ['', ''];
    });
  const head = ['', ...operations.flatMap((operation) => [`${operation}, a second`, 'p99'])];
  return `${table(
    head,
    ways.map((way) => [way, ...cells(way)]),
  )}
${dateOf(at)}, ${machine['processor']} with everything on it, ${machine['node']}, ${database}, ${pooler}: medians and ranges, with 64 connections of wrk.\n`;
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return `${[head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}
