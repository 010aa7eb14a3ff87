// Measures how fast the core is, compared with bare Koa on the same machine. README.md lists the options.
// It starts everything that it needs, including PostgreSQL, and leaves nothing behind. It needs wrk.
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { compareCommits, useOneProcessor } from './against.ts';
import { type DatabaseKind, databaseKinds, leave, openStage } from './environment.ts';
import { keep } from './fill-pages.ts';
import { buildSections, runAll } from './full.ts';
import { requireQuiet, watchOtherLoad } from './load-guard.ts';
import { longFileSection, measureLongFile } from './long-file.ts';
import { measureImport } from './number-import.ts';
import { poolers, poolersSection } from './poolers.ts';
import { startServer, useFolder } from './processes.ts';
import { measureRules } from './rules.ts';
import { soak, soakSection } from './soak.ts';
import { measureTail } from './tail.ts';
import { compareTimes } from './timing.ts';
import { measureRows, type Row, rowTable, scales } from './workloads.ts';

const { values } = parseArgs({
  options: {
    full: { type: 'boolean' },
    soak: { type: 'string' },
    file: { type: 'string' },
    against: { type: 'string' },
    rules: { type: 'string' },
    import: { type: 'string' },
    poolers: { type: 'boolean' },
    tail: { type: 'string' },
    timing: { type: 'string' },
    try: { type: 'boolean', default: false },
    database: { type: 'string', default: 'sqlite' },
    'one-processor': { type: 'boolean' },
  },
});
const say = (line: string) => process.stderr.write(`${line}\n`);
const print = (text: string) => process.stdout.write(text);
const [rounds, seconds] = values.try ? [2, 2] : [12, 2];

/** Prints the sections that a run writes into the pages, and stores them with the results, unless it was only a trial. */
function report(name: string, results: object, sections: Record<string, string>): void {
  print(Object.values(sections).join('\n'));
  if (!values.try) keep(name, results, sections);
}

async function mainRows(): Promise<void> {
  const bare = await startServer('servers/bare.ts');
  const rows: Row[] = [];
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    rows.push(...(await measureRows(stage, bare, values.try ? scales.rehearsal : scales.rows, say)));
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
  const watch = watchOtherLoad(values.try);
  const results = await Promise.race([runAll(values.try ? scales.rehearsal : scales.full, say), watch.broken]);
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
    const kind = chosenKind();
    const results = await soak(kind, minutes, say);
    report(`soak-${kind}`, results, { [`soak-${kind}`]: soakSection(results) });
  },
  async file(lines: number) {
    const results = await measureLongFile(lines, say);
    report('long-file', results, { 'long-file': longFileSection(results) });
  },
  async poolers() {
    const results = await poolers(values.try ? scales.rehearsal : scales.poolers, say);
    report('poolers', results, { poolers: poolersSection(results) });
  },
  async rules(entries: number) {
    for (const kind of databaseKinds) print(await measureRules(kind, entries, rounds, seconds, say));
  },
  async import(lines: number) {
    print(await measureImport(chosenKind(), lines, say));
  },
  async tail(length: number) {
    for (const kind of databaseKinds) print(await measureTail(kind, rounds, length));
  },
  async timing(requests: number) {
    for (const kind of databaseKinds) print(await compareTimes(kind, requests));
  },
} as const;

async function runChosen(): Promise<void> {
  if (values.against !== undefined) return void print(await compareCommits(values.against, rounds, seconds, say));
  for (const name of ['full', 'soak', 'file', 'poolers', 'rules', 'import', 'tail', 'timing'] as const) {
    const value = values[name];
    if (value === undefined) continue;
    if (!(Number(value) > 0)) throw new Error(`Pass --${name} and a positive number.`);
    return runs[name](Number(value));
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
