// Formats results, and writes them into the pages that quote them.
import { readFileSync, writeFileSync } from 'node:fs';
import { type Figures, type LongFile, type Poolers, type Results, type Row, type Scope, type Soak, ways } from './measure.ts';
import { databaseKinds } from './processes.ts';
import { computeSpread, count, counts, databaseLabel, formatDate, range, reaches, table, tableOf, withGoal } from './spread.ts';

const root = new URL('../../', import.meta.url);
export const pages = ['README.md', 'scripts/bench/README.md', 'core/docs/scaling.md', 'core/docs/comparison.md', 'cli/README.md'];

/** Replaces the stored results of the same name, and the sections of the pages that quote them. */
export function keep(name: string, results: object, sections: Readonly<Record<string, string>>): void {
  writeFileSync(new URL(`results/${name}.json`, import.meta.url), readable(results));
  for (const page of pages) writeFileSync(new URL(page, root), fillIn(readFileSync(new URL(page, root), 'utf8'), sections));
}

/** Formats JSON with a line for each member, but a single line for a list of numbers. Numbers are rounded to eight digits. */
function readable(value: object): string {
  const text = JSON.stringify(value, (_key, member: unknown) => (typeof member === 'number' ? Number(member.toPrecision(8)) : member), 1);
  return `${text.replace(/\[[\s\d.,e+-]+\]/g, (list) => list.replace(/\s+/g, ' '))}\n`;
}

/**
 * Writes sections into a page of Markdown, between the comments `<!-- bench NAME -->` and `<!-- /bench -->`. Sections with
 * other names stay unchanged.
 */
export function fillIn(page: string, sections: Readonly<Record<string, string>>): string {
  return page.replace(/(<!-- bench (\S+) -->\n)(.*?)(<!-- \/bench -->)/gs, (all, begin: string, name: string, _old, end: string) => {
    const text = sections[name];
    return text === undefined ? all : `${begin}\n${text.trim()}\n\n${end}`;
  });
}

/** Builds the sections of the pages that quote a full run, by section name. */
export function buildSections(results: Results): Record<string, string> {
  const { at, machine, rows, budget } = results;
  const perSecond = (name: string) =>
    databaseKinds.map((kind) => {
      const row = rows.find((each) => each.name === name && each.database === kind);
      return row ? count(row.perSecond.median) : '';
    });
  const summary = Object.entries({
    'calls placed, each on disk first': 'place',
    'calls cancelled': 'cancel',
    'revoked keys refused': 'refuse a revoked key',
  }).map(([text, name]) => [text, ...perSecond(name)]);
  const ofCore = rows.filter(({ name, database }) => database === 'postgres' && name !== 'bare Koa').map(({ name }) => name);
  return {
    summary: `${table(['per second', 'SQLite', 'PostgreSQL'], summary)}
${formatDate(at)}, on ${machine.processor}, which also ran the database and the load generator.\n`,
    run: runText(results),
    peers: peerTable(rows),
    ...figureSections(results),
    rows: rowTable(rows),
    cpu: cpuTable(rows),
    budget: budgetTable(budget, rows),
    throughput: table(
      ['per second', 'SQLite', 'PostgreSQL'],
      ofCore.map((name) => [name, ...perSecond(name)]),
    ),
  };
}

const ownTurn = 'one query after another, so changes at the same moment, calling hours, lists, limits, pace';
const ownQueue = "which accounts a key reaches, its limits, a cancel that can't lose, calling hours, lists, pace, turns between customers";
/** What you'd still have to build yourself on top of each row's server. */
const leftToDo: Readonly<Record<string, string>> = {
  place: 'nothing of what this page compares',
  'place, straightforward': ownTurn,
  'pg-boss, check a key and add a job': ownQueue,
  'graphile-worker, check a key and add a job': ownQueue,
  'better-auth, verify a key and record its use': 'everything about calls',
};

function peerTable(rows: readonly Row[]): string {
  const { dependencies } = JSON.parse(readFileSync(new URL('competitors/package.json', import.meta.url), 'utf8'));
  return tableOf(
    rows.filter(({ name }) => leftToDo[name] !== undefined),
    {
      '': ({ name }) => name.replace(/^(better-auth|pg-boss|graphile-worker)/, (library) => `${library} ${dependencies[library]}`),
      database: ({ database }) => databaseLabel(database),
      'per second': ({ perSecond }) => count(perSecond.median),
      p99: ({ p99 }) => `${p99.median.toFixed(0)} ms`,
      'what it leaves to you': ({ name }) => leftToDo[name] ?? '',
    },
  );
}

function runText({ at, commit, machine, rounds, otherLoad, figures }: Results): string {
  const measured = figures.filter(({ goal }) => goal !== '');
  const reached = measured.filter(({ goal, spread }) => reaches(goal, spread.median)).length;
  return `${formatDate(at)}, commit ${commit}, ${rounds} rounds: ${Object.values(machine).join(', ')}.
Other programs used at most ${otherLoad.others.toFixed(2)} of a processor, and the host's other virtual machines at most ${otherLoad.stolen.toFixed(2)} (each the lower of two consecutive 15-second averages).
Of ${measured.length} goals, ${reached} are reached, and ${measured.length - reached} are missed.\n`;
}

export function rowTable(rows: readonly Row[]): string {
  return tableOf(rows, {
    '': ({ name }) => name,
    database: ({ database }) => databaseLabel(database),
    'share of bare Koa': ({ ratio }) => `**${ratio.median.toFixed(2)}**`,
    range: ({ ratio }) => range(ratio),
    'per second': ({ perSecond }) => count(perSecond.median),
    'p99 (range)': ({ p99 }) => `${p99.median.toFixed(1)} ms (${range(p99, 1)})`,
  });
}

/** Builds a table with a column for each part of the processor time on each database. The stored results have the ranges. */
function cpuTable(rows: readonly Row[]): string {
  // Only Linux reports CPU time.
  const measured = rows.filter(({ main }) => main.median > 0);
  const cell = (name: string, kind: string, part: 'main' | 'rest' | 'postgres') => {
    const row = measured.find((each) => each.name === name && each.database === kind);
    return row ? row[part].median.toFixed(1) : '';
  };
  return table(
    ['CPU time per request, µs', 'SQLite: main thread', 'rest of the process', 'PostgreSQL: main thread', 'rest', 'its server'],
    [...new Set(measured.map(({ name }) => name))].map((name) => [
      ...[name, cell(name, 'sqlite', 'main'), cell(name, 'sqlite', 'rest')],
      ...[cell(name, 'postgres', 'main'), cell(name, 'postgres', 'rest'), cell(name, 'postgres', 'postgres')],
    ]),
  );
}

/** Builds a table whose lines show how much more each scope costs than the one before. */
function budgetTable(budget: readonly Scope[], rows: readonly Row[]): string {
  const onPostgres = rows.filter(({ name, database }) => budget.length > 0 && name === 'place' && database === 'postgres');
  const all = [...budget, ...onPostgres.map((row) => ({ ...row, name: 'on PostgreSQL instead' }))];
  const lines = all.map(({ name, ...scope }, n) => {
    const added = (part: 'main' | 'rest') => (scope[part].median - (all[n - 1]?.[part].median ?? 0)).toFixed(1);
    return [name, added('main'), added('rest'), scope.main.median.toFixed(1), range(scope.main, 1)];
  });
  return table(['CPU time per placed call, µs', 'main thread', 'rest of the process', 'main thread, in total', 'range'], lines);
}

export function poolersSection({ at, machine, database, pooler, rows }: Poolers): string {
  const cells = (name: string) =>
    rows.filter((row) => row.name === name).flatMap(({ perSecond, p99 }) => [counts(perSecond), `${p99.median.toFixed(1)} ms`]);
  const lines = ways.map((way) => [way, ...cells(`place, ${way}`), ...cells(`cancel, ${way}`)]);
  return `${table(['', 'place, per second', 'p99', 'cancel, per second', 'p99'], lines)}
${formatDate(at)}, ${machine.processor} for all programs together, ${machine['node']}, ${database}, ${pooler}: medians and ranges, with 64 wrk connections.\n`;
}

/** A figure that has nothing to do with a database is in the columns of both. */
function figureTable(figures: Figures['figures']): string {
  const cell = (name: string, kind: string) => {
    const figure = figures.find((each) => each.name === name && (each.database === kind || each.database === ''));
    if (!figure) return '';
    return reaches(figure.goal, figure.spread.median) ? figure.value : `${figure.value}, **missed**`;
  };
  return table(
    ['', 'goal', ...databaseKinds.map(databaseLabel)],
    Array.from(
      Map.groupBy(figures, ({ name }) => name),
      ([name, [first]]) => [...[name, first?.goal ?? ''], ...databaseKinds.map((kind) => cell(name, kind))],
    ),
  );
}

/** Builds the sections of the pages that quote these results, by section name. */
function figureSections({ figures, cores, grown }: Figures) {
  return {
    figures: figureTable(figures),
    cores: tableOf(cores, {
      cores: ({ cores }) => String(cores),
      'placed calls per second': ({ perSecond }) => count(perSecond.median),
      range: ({ perSecond: { min, max } }) => `${count(min)} to ${count(max)}`,
      'processors busy': ({ busy }) => `${Math.round(busy.median * 100)}%`,
    }),
    growth: tableOf(grown, {
      'keys, and as many calls': ({ size }) => count(size),
      database: ({ database }) => databaseLabel(database),
      place: ({ place }) => counts(place),
      'refuse an unknown key': ({ refuse }) => counts(refuse),
      cancel: ({ cancel }) => counts(cancel),
    }),
  };
}

export function soakSection({ at, commit, database, minutes, memory, otherLoad }: Soak): string {
  const { slope, min, max, peak, isFlat, warmUpMinutes } = memory;
  const median = (name: 'perSecond' | 'p99') => computeSpread(minutes.map((minute) => minute[name])).median;
  return `${databaseLabel(database)}, ${formatDate(at)}, commit ${commit}: ${minutes.length} minutes of placing, cancelling and refusing at ${count(median('perSecond'))} requests per second.
Memory ${isFlat ? 'is flat' : 'is **not flat**'}: after ${warmUpMinutes} minutes, it grows by ${slope.toFixed(1)} MB per hour (${min.toFixed(1)} to ${max.toFixed(1)}), and it never exceeds ${peak.toFixed(0)} MB (goal: ${withGoal('≤ 220 MB', peak)}).
p99 ${median('p99').toFixed(1)} ms; ${minutes.at(-1)?.files} open files at the end; other programs used at most ${otherLoad.others.toFixed(2)} of a processor.\n`;
}

export function longFileSection({ at, machine, lines, megabytes, runs, firstCall }: LongFile): string {
  const peak = Math.max(...runs.map(({ memory }) => memory));
  const rows = runs.map(({ step, memory, seconds }) => [step, `${memory.toFixed(0)} MB`, `${seconds.toFixed(0)} s`]);
  return `${table([`a file of ${count(lines)} lines, ${megabytes.toFixed(0)} MB`, 'peak memory', 'CPU time'], rows)}
${formatDate(at)}, ${machine.processor}, ${machine['node']}, with the core on the same machine: at most ${peak.toFixed(0)} MB (goal: ${withGoal('< 200 MB', peak)}).
The first call was placed ${(firstCall / 1_000).toFixed(2)} s after the check (goal: ${withGoal('≤ 2 s', firstCall / 1_000)}).\n`;
}
