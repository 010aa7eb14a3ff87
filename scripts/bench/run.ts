// Measures how fast the core is, compared with bare Koa on the same machine. README.md lists the options.
// It starts everything that it needs, including PostgreSQL, and leaves nothing behind. It needs wrk.
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { compareCommits, measureRules } from './compare.ts';
import { measureConsole } from './console.ts';
import { compareTimes, measureImport, measureLongFile, measureRows, measureTail, poolers, type Row, runAll, soak } from './measure.ts';
import { type DatabaseKind, databaseKinds, leave, run, useFolder, watchOtherLoad } from './processes.ts';
import { say } from './spread.ts';
import { openStage } from './stage.ts';
import { buildSections, keep, longFileSection, poolersSection, rowTable, soakSection } from './write.ts';

const [flag, value] = [{ type: 'boolean' }, { type: 'string' }] as const;
const { values } = parseArgs({
  options: {
    ...{ full: flag, poolers: flag, console: flag, try: flag, 'one-processor': flag },
    ...{ soak: value, file: value, against: value, rules: value, import: value, tail: value, timing: value },
    database: { ...value, default: 'sqlite' },
  },
});
const isTrial = values.try ?? false;
const print = (text: string) => void process.stdout.write(text);
const rounds = (usual: number) => (isTrial ? 2 : usual);

type Sections = Record<string, string>;

/** Prints the sections that a run writes into the pages, and stores them with the results, unless it was only a trial. */
function report<Results extends object>(name: string, results: Results, build: (results: Results) => string | Sections): void {
  const built = build(results);
  const sections = typeof built === 'string' ? { [name]: built } : built;
  print(Object.values(sections).join('\n'));
  if (!isTrial) keep(name, results, sections);
}

async function onBoth(measure: (kind: DatabaseKind) => Promise<string>): Promise<void> {
  for (const kind of databaseKinds) print(await measure(kind));
}

async function mainRows(): Promise<void> {
  const rows: Row[] = [];
  for (const kind of databaseKinds) {
    await using stage = await openStage(kind);
    rows.push(...(await measureRows(stage, rounds(3))));
  }
  print(rowTable(rows));
}

async function full(): Promise<void> {
  // Checks this now, so that the run doesn't fail after half an hour.
  const { bavail, bsize } = statfsSync(tmpdir());
  if (!isTrial && bavail * bsize < 50e9)
    throw new Error(`A full run needs 50 GB in ${tmpdir()}. Make room, or set TMPDIR to another folder.`);
  const watch = watchOtherLoad(isTrial);
  const [smallest, listed, largest] = isTrial ? [1_000, 5_000, 20_000] : [1_000, 1_000_000, 10_000_000];
  const results = await Promise.race([runAll(rounds(9), { smallest, listed, largest }), watch.broken]);
  watch.stop();
  report('latest', { ...results, otherLoad: watch.max }, buildSections);
}

function chosenKind(): DatabaseKind {
  const kind = databaseKinds.find((each) => each === values.database);
  if (kind === undefined) throw new Error('Pass --database sqlite or postgres.');
  return kind;
}

/** The runs that have an option. If the option takes a positive number, the run gets it. */
const runs: Readonly<Record<string, (amount: number) => Promise<void>>> = {
  full,
  soak: async (minutes) => report(`soak-${chosenKind()}`, await soak(chosenKind(), minutes), soakSection),
  file: async (lines) => report('long-file', await measureLongFile(lines), longFileSection),
  poolers: async () => report('poolers', await poolers(rounds(5)), poolersSection),
  rules: (entries) => onBoth((kind) => measureRules(kind, entries, rounds(12))),
  import: async (lines) => print(await measureImport(chosenKind(), lines)),
  console: () => onBoth((kind) => (isTrial ? measureConsole(kind, 10_000, 100_000) : measureConsole(kind, 1_000_000, 10_000_000))),
  tail: (seconds) => onBoth((kind) => measureTail(kind, rounds(12), seconds)),
  timing: (requests) => onBoth((kind) => compareTimes(kind, requests)),
};

async function runChosen(): Promise<void> {
  // Pins this process, and with it everything that it starts.
  if (values['one-processor']) await run('taskset', ['--pid', '--cpu-list', '0', String(process.pid)]);
  if (values.against !== undefined) return print(await compareCommits(values.against, rounds(12)));
  for (const [name, amount] of Object.entries(values)) {
    const chosen = runs[name];
    if (chosen && !(Number(amount) > 0)) throw new Error(`--${name} must be a positive number.`);
    if (chosen) return chosen(Number(amount));
  }
  await mainRows();
}

useFolder();
// Without a handler, a signal would end this process without its `exit` event, at which PostgreSQL and all other processes are killed.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1));
try {
  await runChosen();
} catch (error) {
  say(error instanceof Error ? String(error.stack) : String(error));
  process.exitCode = 1;
} finally {
  await leave();
  // If one measurement has failed, others may still be running.
  process.exit();
}
