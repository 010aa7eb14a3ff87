// How fast the core is, next to bare Koa on the same machine:
//   npm run bench                    the main rows, in some five minutes
//   npm run bench -- --full          all of it, on a machine that does nothing else; keeps the results, and fills in the pages that quote them
//   npm run bench -- --full --try    all of it in short, on any machine; keeps nothing
//   npm run bench -- --soak 60       so many minutes of load, with --database sqlite or postgres
//   npm run bench -- --file 1000000  the command line with a file of so many lines
//   npm run bench -- --poolers       with PgBouncer, which has to be installed, and without
// It starts all that it needs itself, PostgreSQL included, and leaves nothing behind. It needs wrk.
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { databaseKinds, setUpPostgres } from '../../test/support/databases.ts';
import { openStage } from './environment.ts';
import { runAll } from './full.ts';
import { requireQuiet, watchOtherLoad } from './load-guard.ts';
import { longFile } from './long-file.ts';
import { poolers } from './poolers.ts';
import { leave, startServer, useFolder } from './processes.ts';
import { keep, keepLongFile, keepPoolers, keepSoak } from './results.ts';
import { scales } from './scale.ts';
import { soak } from './soak.ts';
import { poolersSection, printed, rowTable } from './tables.ts';
import { measure, type Row, rowsOf } from './workloads.ts';

const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    try: { type: 'boolean', default: false },
    soak: { type: 'string' },
    file: { type: 'string' },
    poolers: { type: 'boolean', default: false },
    database: { type: 'string', default: 'sqlite' },
  },
});
const say = (line: string) => process.stderr.write(`${line}\n`);

// The server's defaults are for a small machine that does other things. Its manual recommends a quarter of the memory for its buffers, and
// log files that are used again need not be made in the middle of a round.
const postgresSettings = ['shared_buffers=1GB', 'min_wal_size=1GB', 'max_wal_size=4GB'];

useFolder();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    say('interrupted');
    void leave().finally(() => process.exit(1));
  });
}
try {
  if (values.soak !== undefined) await soaked(Number(values.soak));
  else if (values.file !== undefined) await fileOf(Number(values.file));
  else if (values.poolers) await pooled();
  else await (values.full ? full() : mainRows());
} catch (error) {
  say(error instanceof Error ? String(error.stack) : String(error));
  process.exitCode = 1;
} finally {
  await leave();
  // Other parts may still run, where one has failed.
  process.exit();
}

async function mainRows(): Promise<void> {
  await setUpPostgres(postgresSettings);
  const bare = await startServer('servers/bare.ts');
  const rows: Row[] = [];
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    const straightforward = await startServer('servers/straightforward.ts', { DATABASE_URL: stage.database });
    rows.push(...(await measure(stage, rowsOf(stage, straightforward), bare, scales.rows, say)));
    await straightforward.stop();
    await stage.close();
  }
  process.stdout.write(rowTable(rows));
}

async function full(): Promise<void> {
  if (!values.try) {
    requireRoom();
    await requireQuiet();
  }
  const watch = watchOtherLoad(values.try);
  const { results, plot } = await Promise.race([runAll(values.try ? scales.rehearsal : scales.full, postgresSettings, say), watch.broken]);
  watch.stop();
  const whole = { ...results, otherLoad: watch.most };
  process.stdout.write(printed(whole));
  if (!values.try) keep(whole, plot);
}

/** Found out now, not after half an hour. */
function requireRoom(): void {
  const { bavail, bsize } = statfsSync(tmpdir());
  if (bavail * bsize < 50e9) throw new Error(`A full run needs 50 GB in ${tmpdir()}. Make room, or set TMPDIR to another folder.`);
}

async function soaked(minutes: number): Promise<void> {
  const kind = databaseKinds.find((one) => one === values.database);
  if (kind === undefined || !(minutes > 0)) throw new Error('Say --soak and a number of minutes, and --database sqlite or postgres.');
  if (kind === 'postgres') await setUpPostgres(postgresSettings);
  const found = await soak(kind, minutes, say);
  say(JSON.stringify({ ...found, samples: undefined, loads: undefined }, null, 1));
  if (!values.try) keepSoak(found);
}

async function fileOf(lines: number): Promise<void> {
  if (!(lines > 1)) throw new Error('Say --file and a number of lines.');
  const found = await longFile(lines, say);
  say(JSON.stringify(found, null, 1));
  if (!values.try) keepLongFile(found);
}

async function pooled(): Promise<void> {
  await setUpPostgres(postgresSettings);
  const found = await poolers(values.try ? scales.rehearsal : scales.poolers, say);
  process.stdout.write(poolersSection(found));
  if (!values.try) keepPoolers(found);
}
