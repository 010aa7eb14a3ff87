// How fast the core is, next to bare Koa on the same machine:
//   npm run bench             a few minutes: the main rows
//   npm run bench -- --full   half an hour and 25 GB of disk: all rows, growth, peers; writes results/ and is what the README quotes
// It starts all that it needs itself, PostgreSQL included, and leaves nothing behind. It needs wrk.
import { parseArgs } from 'node:util';
import { cleanUp, databaseKinds } from '../../test/support/databases.ts';
import { startServer, stopServers } from './processes.ts';
import { measure, type Row, rowsOf } from './rows.ts';
import { openStage } from './stage.ts';

const { values } = parseArgs({
  options: { full: { type: 'boolean', default: false }, rounds: { type: 'string' }, seconds: { type: 'string' } },
});
const rounds = Number(values.rounds ?? (values.full ? 7 : 3));
const seconds = Number(values.seconds ?? (values.full ? 4 : 2));
const say = (line: string) => process.stderr.write(`${line}\n`);

try {
  const bare = await startServer('servers/bare.ts');
  const rows: Row[] = [];
  for (const kind of databaseKinds) {
    const stage = await openStage(kind);
    const straightforward = await startServer('servers/straightforward.ts', { DATABASE_URL: stage.database });
    rows.push(...(await measure(rowsOf(stage, straightforward), bare, rounds, seconds, say)));
    await straightforward.stop();
    await stage.close();
  }
  process.stdout.write(table(rows));
} finally {
  stopServers();
  await cleanUp();
}

function table(rows: readonly Row[]): string {
  const lines = rows.map(({ name, database, goal, ratio, perSecond, p50, p99 }) => {
    const range = `${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)}`;
    const times = `${p50.median.toFixed(2)} | ${p99.median.toFixed(2)}`;
    return `| ${name} | ${database} | ${goal ?? ''} | **${ratio.median.toFixed(2)}** | ${range} | ${Math.round(perSecond.median)} | ${times} |`;
  });
  const head = '| | database | goal | of bare Koa | range | a second | p50 ms | p99 ms |';
  return `${[head, '|---|---|---|---|---|---|---|---|', ...lines].join('\n')}\n`;
}
