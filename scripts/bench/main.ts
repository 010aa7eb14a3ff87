// Measures how fast the core is, compared with bare Koa on the same machine. README.md lists the options.
// It starts everything that it needs, including PostgreSQL, and leaves nothing behind. It needs wrk.
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { compareCommits, useOneProcessor } from './against.ts';
import { openStage } from './environment.ts';
import { buildSections, runAll } from './full.ts';
import { requireQuiet, watchOtherLoad } from './load-guard.ts';
import { longFileSection, measureLongFile } from './long-file.ts';
import { measureImport } from './number-import.ts';
import { keep } from './pages.ts';
import { poolers, poolersSection } from './poolers.ts';
import { type DatabaseKind, databaseKinds, leave, useFolder } from './processes.ts';
import { measureRules } from './rules.ts';
import { soak, soakSection } from './soak.ts';
import { say } from './spread.ts';
import { measureTail } from './tail.ts';
import { compareTimes } from './timing.ts';
import { measureRows, type Row, rowTable } from './workloads.ts';

const [flag, value] = [{ type: 'boolean' }, { type: 'string' }] as const;
const { values } = parseArgs({
  options: {
    ...{ full: flag, poolers: flag, try: flag, 'one-processor': flag },
    ...{ soak: value, file: value, against: value, rules: value, import: value, tail: value, timing: value },
    database: { ...value, default: 'sqlite' },
  },
});
const print = (text: string) => process.stdout.write(text);
const rounds = (usual: number) => (values.try ? 2 : usual);

/** Prints the sections that a run writes into the pages, and stores them with the results, unless it was only a trial. */
function report(name: string, results: object, sections: Record<string, string>): void {
  print(Object.values(sections).join('\n'));
  if (!values.try) keep(name, results, sections);
}

async function onBoth(measure: (kind: DatabaseKind) => Promise<string>): Promise<void> {
  for (const kind of databaseKinds) print(await measure(kind));
}

async function mainRows(): Promise<void> {
  const rows: Row[] = [];
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    rows.push(...(await measureRows(stage, rounds(3))));
    await stage.close();
  }
  print(rowTable(rows));
}

async function full(): Promise<void> {
  if (!values.try) {
    // Checks this now, so that the run doesn't fail after half an hour.
    const { bavail, bsize } = statfsSync(tmpdir());
    if (bavail * bsize < 50e9) throw new Error(`A full run needs 50 GB in ${tmpdir()}. Make room, or set TMPDIR to another folder.`);
    await requireQuiet();
  }
  const watch = watchOtherLoad(values.try ?? false);
  const sizes = values.try ? [1_000, 5_000, 20_000] : [1_000, 1_000_000, 10_000_000];
  const results = await Promise.race([runAll(rounds(9), sizes), watch.broken]);
  watch.stop();
  const whole = { ...results, otherLoad: watch.max };
  report('latest', whole, buildSections(whole));
}

function chosenKind(): DatabaseKind {
  const kind = databaseKinds.find((each) => each === values.database);
  if (kind === undefined) throw new Error('Pass --database sqlite or postgres.');
  return kind;
}

/** The runs that have an option. If the option takes a positive number, the run gets it. */
const runs = {
  full,
  async soak(minutes: number) {
    const results = await soak(chosenKind(), minutes);
    const name = `soak-${results.database}`;
    report(name, results, { [name]: soakSection(results) });
  },
  async file(lines: number) {
    const results = await measureLongFile(lines);
    report('long-file', results, { 'long-file': longFileSection(results) });
  },
  async poolers() {
    const results = await poolers(rounds(5));
    report('poolers', results, { poolers: poolersSection(results) });
  },
  rules: (entries: number) => onBoth((kind) => measureRules(kind, entries, rounds(12))),
  import: async (lines: number) => void print(await measureImport(chosenKind(), lines)),
  tail: (seconds: number) => onBoth((kind) => measureTail(kind, rounds(12), seconds)),
  timing: (requests: number) => onBoth((kind) => compareTimes(kind, requests)),
} as const;

async function runChosen(): Promise<void> {
  if (values.against !== undefined) return void print(await compareCommits(values.against, rounds(12)));
  for (const name of ['full', 'soak', 'file', 'poolers', 'rules', 'import', 'tail', 'timing'] as const) {
    if (values[name] === undefined) continue;
    if (!(Number(values[name]) > 0)) throw new Error(`--${name} must be a positive number.`);
    return runs[name](Number(values[name]));
  }
  await mainRows();
}

useFolder();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    say('interrupted');
    void leave().finally(() => process.exit(1));
  });
try {
  if (values['one-processor']) await useOneProcessor();
  await runChosen();
} catch (error) {
  say(error instanceof Error ? String(error.stack) : String(error));
  process.exitCode = 1;
} finally {
  await leave();
  // If one part has failed, others may still be running.
  process.exit();
}
