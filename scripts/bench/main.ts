// Measures how fast the core is, compared with bare Koa on the same machine:
//   npm run bench                    the main rows, in about five minutes
//   npm run bench -- --full          everything, on an otherwise idle machine; stores the results, and fills in the pages that quote them
//   npm run bench -- --full --try    a short version of everything, on any machine; stores nothing (--try shortens the other runs, too)
//   npm run bench -- --soak 60       this many minutes of load, with --database sqlite or postgres
//   npm run bench -- --file 1000000  the command line with a file of this many lines
//   npm run bench -- --against COMMIT   this commit and another in turn; --one-processor runs everything on one processor
//   npm run bench -- --rules 10000000   with this many do-not-call entries and fifty rules, with limits of a key, and beside a flood
//   npm run bench -- --poolers       with and without PgBouncer, which must be installed
// It starts everything that it needs, including PostgreSQL, and leaves nothing behind. It needs wrk.
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { compareCommits, comparisonTable, useOneProcessor } from './against.ts';
import { databaseKinds, leave, openStage } from './environment.ts';
import { runAll } from './full.ts';
import { requireQuiet, watchOtherLoad } from './load-guard.ts';
import { longFile } from './long-file.ts';
import { poolers } from './poolers.ts';
import { startServer, useFolder } from './processes.ts';
import { keep } from './results.ts';
import { measureRules } from './rules.ts';
import { soak } from './soak.ts';
import { longFileSection, poolersSection, rowTable, sectionsOf, soakSection } from './tables.ts';
import { measureRows, type Row, scales } from './workloads.ts';

const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    try: { type: 'boolean', default: false },
    soak: { type: 'string' },
    file: { type: 'string' },
    rules: { type: 'string' },
    poolers: { type: 'boolean', default: false },
    database: { type: 'string', default: 'sqlite' },
    against: { type: 'string' },
    'one-processor': { type: 'boolean', default: false },
  },
});
const say = (line: string) => process.stderr.write(`${line}\n`);

/** Prints the sections that a run writes into the pages, and stores them with the results, unless it was only a try. */
function report(name: string, found: object, sections: Record<string, string>, more: Record<string, string> = {}): void {
  process.stdout.write(Object.values(sections).join('\n'));
  if (!values.try) keep(name, found, sections, more);
}

async function mainRows(): Promise<void> {
  const bare = await startServer('servers/bare.ts');
  const rows: Row[] = [];
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    rows.push(...(await measureRows(stage, bare, values.try ? scales.rehearsal : scales.rows, say)));
    await stage.close();
  }
  process.stdout.write(rowTable(rows));
}

async function full(): Promise<void> {
  if (!values.try) {
    // Checks now, so that the run doesn't fail after half an hour.
    const { bavail, bsize } = statfsSync(tmpdir());
    if (bavail * bsize < 50e9) throw new Error(`A full run needs 50 GB in ${tmpdir()}. Make room, or set TMPDIR to another folder.`);
    await requireQuiet();
  }
  const watch = watchOtherLoad(values.try);
  const { results, plot } = await Promise.race([runAll(values.try ? scales.rehearsal : scales.full, say), watch.broken]);
  watch.stop();
  const whole = { ...results, otherLoad: watch.most };
  report('latest', whole, sectionsOf(whole), { 'growth.svg': plot });
}

async function soakOf(minutes: number): Promise<void> {
  const kind = databaseKinds.find((one) => one === values.database);
  if (kind === undefined || !(minutes > 0)) throw new Error('Pass --soak and a number of minutes, and --database sqlite or postgres.');
  const found = await soak(kind, minutes, say);
  report(`soak-${kind}`, found, { [`soak-${kind}`]: soakSection(found) });
}

async function fileOf(lines: number): Promise<void> {
  if (!(lines > 1)) throw new Error('Pass --file and a number of lines.');
  const found = await longFile(lines, say);
  report('long-file', found, { 'long-file': longFileSection(found) });
}

async function pooled(): Promise<void> {
  const found = await poolers(values.try ? scales.rehearsal : scales.poolers, say);
  report('poolers', found, { poolers: poolersSection(found) });
}

async function against(commit: string): Promise<void> {
  process.stdout.write(comparisonTable(await compareCommits(commit, values.try ? 2 : 12, values.try ? 1 : 2, say), commit));
}

async function rules(entries: number): Promise<void> {
  if (!(entries > 0)) throw new Error('Pass --rules and a number of entries.');
  for (const kind of databaseKinds) process.stdout.write(await measureRules(kind, entries, values.try ? 2 : 12, values.try ? 1 : 2, say));
}

useFolder();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    say('interrupted');
    void leave().finally(() => process.exit(1));
  });
try {
  if (values['one-processor']) await useOneProcessor();
  if (values.against !== undefined) await against(values.against);
  else if (values.rules !== undefined) await rules(Number(values.rules));
  else if (values.soak !== undefined) await soakOf(Number(values.soak));
  else if (values.file !== undefined) await fileOf(Number(values.file));
  else await (values.poolers ? pooled() : values.full ? full() : mainRows());
} catch (error) {
  say(error instanceof Error ? String(error.stack) : String(error));
  process.exitCode = 1;
} finally {
  await leave();
  // If one part has failed, others may still be running.
  process.exit();
}
