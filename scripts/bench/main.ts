// How fast the core is, next to bare Koa on the same machine:
//   npm run bench             the main rows, in some five minutes
//   npm run bench -- --full   all of it, in an hour, with 25 GB of disk: keeps the results in results/, which the README quotes
//   npm run bench -- --full --only rows,figures,cores,lists,growth   parts of that
// It starts all that it needs itself, PostgreSQL included, and leaves nothing behind. It needs wrk.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cleanUp, databaseKinds, freshDirectory, setUpPostgres } from '../../test/support/databases.ts';
import { openStage, type Stage } from './environment.ts';
import { type Grown, grow, listKeys } from './growth.ts';
import { machine } from './machine.ts';
import { type Server, startServer, stopServers } from './processes.ts';
import { keep, keepPlot, type Results, tablesOf } from './report.ts';
import { verifying } from './requests.ts';
import * as moments from './single-metrics.ts';
import { type Measured, measure, type Row, rowsOf } from './workloads.ts';

const { values } = parseArgs({
  options: { full: { type: 'boolean', default: false }, only: { type: 'string', default: 'rows,figures,cores,lists,growth' } },
});
const isFull = values.full;
const isWanted = (part: string) => (isFull ? values.only.split(',').includes(part) : part === 'rows');
const [rounds, seconds] = [isFull ? 7 : 3, 2];
const say = (line: string) => process.stderr.write(`${line}\n`);

// The server's defaults are for a small machine that does other things. Its manual recommends a quarter of the memory for its buffers, and
// reused log files need not be created in the middle of a round.
const postgresSettings = ['shared_buffers=1GB', 'min_wal_size=1GB', 'max_wal_size=4GB'];

const results: Partial<Results> = { at: new Date().toISOString() };
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void leave().finally(() => process.exit(1)));
try {
  await setUpPostgres(postgresSettings);
  const bare = await startServer('servers/bare.ts');
  // One after the other: what a database tidies up must not fall into the other's rounds.
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    results.machine = { ...results.machine, ...(await machine(stage)), settings: postgresSettings.join(', ') };
    if (isWanted('rows')) results.rows = [...(results.rows ?? []), ...(await measure(await rowsAt(stage), bare, rounds, seconds, say))];
    if (isWanted('figures')) results.figures = [...(results.figures ?? []), ...(await figures(stage, bare, results.rows ?? []))];
    if (isWanted('cores') && kind === 'postgres') results.cores = await moments.severalCores(stage, rounds, seconds);
    await stage.close();
    if (isWanted('lists')) results.lists = [...(results.lists ?? []), await listKeys(kind, rounds, say)];
    if (isFull) keep(results);
  }
  if (isWanted('growth')) results.grown = await growth();
  process.stdout.write(tablesOf(isFull ? keep(results) : results));
} finally {
  await leave();
}

/** Leaves nothing behind, however it ends. */
async function leave(): Promise<void> {
  stopServers();
  await cleanUp();
}

async function rowsAt(stage: Stage): Promise<Measured[]> {
  const rows = rowsOf(stage, await startServer('servers/straightforward.ts', { DATABASE_URL: stage.database }));
  if (!isFull || stage.kind !== 'sqlite') return rows;
  installPeers();
  const peer = await startServer('competitors/better-auth.ts', { DATABASE_FILE: join(freshDirectory(), 'peer.db') });
  const target = verifying(peer.url, String(peer.said['key']));
  return [...rows, { name: 'better-auth, verify a key and note its use', database: 'sqlite', goal: null, target }];
}

async function figures(stage: Stage, bare: Server, rows: readonly Row[]): Promise<moments.Figure[]> {
  return [
    ...(stage.kind === 'sqlite' ? [await moments.help(11)] : []),
    moments.memory(stage),
    ...(rows.length > 0 ? [moments.placeP99(rows, stage.kind)] : []),
    await moments.loneClient(stage, bare, rounds),
    await moments.start(stage, 11),
    ...(await moments.signInFlood(stage, rounds, seconds)),
  ];
}

async function growth(): Promise<Grown[]> {
  const grown: Grown[] = [];
  for (const kind of databaseKinds) grown.push(...(await grow(kind, rounds, 2, say)));
  installPeers();
  // From a folder with packages of its own, which the types of this one know nothing of.
  const { plot }: { plot: (grown: readonly Grown[]) => string } = await import(new URL('competitors/plot.ts', import.meta.url).href);
  keepPlot(plot(grown));
  return grown;
}

/** In the versions of their own lock file. */
function installPeers(): void {
  const folder = fileURLToPath(new URL('competitors', import.meta.url));
  execFileSync('npm', ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund'], {
    stdio: 'ignore',
    shell: process.platform === 'win32',
  });
}
