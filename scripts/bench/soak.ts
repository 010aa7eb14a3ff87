// An hour at half of what the core can take, and what that does to its memory, files and times:
//   node_modules/.bin/node scripts/bench/soak.ts --minutes 60 --out soak.json
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { cleanUp, type DatabaseKind } from '../../test/support/databases.ts';
import { ask } from '../../test/support/http.ts';
import { openStage, type Stage } from './environment.ts';
import { mixing } from './requests.ts';
import { load } from './wrk.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    database: { type: 'string', default: 'sqlite' },
    out: { type: 'string', default: 'soak.json' },
  },
});
const connections = 64;

type Sample = {
  minute: number;
  perSecond: number;
  p50: number;
  p99: number;
  rssMb: number;
  heapMb: number;
  files: number;
  walMb: number;
  fileMb: number;
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void cleanUp().finally(() => process.exit(1)));
const stage = await openStage(values.database === 'postgres' ? 'postgres' : ('sqlite' satisfies DatabaseKind));
try {
  const target = (pauseMs: number) => mixing(stage.core.url, stage.path, stage.keys[0] ?? '', stage.unknown[0] ?? '', pauseMs);
  const peak = await load(target(0), 20, 0, connections);
  // As long a pause as makes a connection's turn twice as long as it is at the peak.
  const pauseMs = Math.round((connections / peak.perSecond) * 1_000);
  const samples: Sample[] = [];
  for (let minute = 1; minute <= Number(values.minutes); minute++) {
    const { perSecond, p50, p99 } = await load(target(pauseMs), 60, minute, connections);
    samples.push({ minute, perSecond, p50, p99, ...(await sizes(stage)) });
    writeFileSync(values.out, `${JSON.stringify({ peakPerSecond: peak.perSecond, pauseMs, samples }, null, 2)}\n`);
    process.stdout.write(`${JSON.stringify(samples.at(-1))}\n`);
  }
} finally {
  await stage.close();
  await cleanUp();
}

/** As Linux has it under /proc. */
async function sizes({ core, database }: Stage): Promise<Omit<Sample, 'minute' | 'perSecond' | 'p50' | 'p99'>> {
  const { pid } = core.child;
  const rss = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  const { text: metrics } = await ask('GET', `${core.managementUrl}/metrics`);
  const heap = /^nodejs_heap_size_used_bytes (\S+)/m.exec(metrics)?.[1];
  const file = database.startsWith('sqlite:') ? database.slice('sqlite:'.length) : undefined;
  const megabytes = (bytes: number) => Math.round(bytes / 1e5) / 10;
  return {
    rssMb: megabytes(Number(rss) * 1024),
    heapMb: megabytes(Number(heap)),
    files: readdirSync(`/proc/${pid}/fd`).length,
    walMb: file ? megabytes(statSync(`${file}-wal`).size) : 0,
    fileMb: file ? megabytes(statSync(file).size) : 0,
  };
}
