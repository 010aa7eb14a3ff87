import { readdirSync, statSync } from 'node:fs';
import type { DatabaseKind } from '../../test/support/databases.ts';
import { ask } from '../../test/support/http.ts';
import { openStage, type Stage } from './environment.ts';
import { type OtherLoad, watchOtherLoad } from './load-guard.ts';
import { commitOf, databaseVersion, type Machine, machineOf } from './machine.ts';
import { listProcesses, memoryOf, treeOf } from './proc.ts';
import { mixing } from './requests.ts';
import { slopeWithRange } from './spread.ts';
import { type Load, load } from './wrk.ts';

/** Memory in MB, at so many seconds. */
export type Sample = { seconds: number; rss: number };
/** What a minute of load took, and what it left: sizes in MB. */
type Minute = Load & { minute: number; heap: number; files: number; wal: number; file: number };
/** The slope, with its range, in MB an hour. */
export type Memory = { warmUpMinutes: number; slope: number; min: number; max: number; most: number; isFlat: boolean };

export type Soak = {
  at: string;
  commit: string;
  machine: Machine;
  database: DatabaseKind;
  peakPerSecond: number;
  otherLoad: OtherLoad;
  memory: Memory;
  minutes: Minute[];
  samples: Sample[];
};

const connections = 64;
/** In ms. */
const sampleEvery = 10_000;
/** In MB an hour: less than that is flat. */
const flat = 5;

/** Loads a core with half of what it can take, and follows its memory, files and times. Needs Linux. */
export async function soak(kind: DatabaseKind, minutes: number, say: (line: string) => void): Promise<Soak> {
  const at = new Date().toISOString();
  const stage = await openStage(kind);
  const about = { commit: await commitOf(), machine: { ...(await machineOf()), [kind]: await databaseVersion(stage) } };
  const target = (pauseMs: number) => mixing(stage.core.url, stage.path, stage.keys[0] ?? '', stage.unknown[0] ?? '', pauseMs);
  const { perSecond: peakPerSecond } = await load(target(0), 20, 0, connections);
  // With so long a pause, a connection's turn takes twice as long as at the peak.
  const pauseMs = Math.round((connections / peakPerSecond) * 1_000);
  const watch = watchOtherLoad(true);
  const samples: Sample[] = [];
  const start = performance.now();
  const sample = () => samples.push({ seconds: Math.round((performance.now() - start) / 1_000), rss: memoryNow(stage) });
  const timer = setInterval(sample, sampleEvery);
  const found: Minute[] = [];
  for (let minute = 1; minute <= minutes; minute++) {
    found.push({ minute, ...(await load(target(pauseMs), 60, minute, connections)), ...(await sizes(stage)) });
    say(`minute ${minute}: ${samples.at(-1)?.rss.toFixed(1)} MB, ${Math.round(found.at(-1)?.perSecond ?? 0)} requests a second`);
  }
  clearInterval(timer);
  watch.stop();
  await stage.close();
  return { at, ...about, database: kind, peakPerSecond, otherLoad: watch.most, memory: memoryOver(samples), minutes: found, samples };
}

/** Whether memory is flat: whether its slope, after a sixth of the time, is small in all of its range. */
export function memoryOver(samples: readonly Sample[]): Memory {
  const warmUp = (samples.at(-1)?.seconds ?? 0) / 6;
  const points = samples.filter(({ seconds }) => seconds > warmUp).map(({ seconds, rss }) => ({ x: seconds / 3_600, y: rss }));
  const slope = slopeWithRange(points);
  const most = Math.max(...samples.map(({ rss }) => rss));
  return { warmUpMinutes: Math.round(warmUp / 60), ...slope, most, isFlat: slope.max < flat };
}

function memoryNow({ core }: Stage): number {
  return memoryOf(treeOf(core.pid, listProcesses())) / 1e6;
}

async function sizes({ core, database }: Stage): Promise<Pick<Minute, 'heap' | 'files' | 'wal' | 'file'>> {
  const { text: metrics } = await ask('GET', `${core.managementUrl}/metrics`);
  const heap = Number(/^nodejs_heap_size_used_bytes (\S+)/m.exec(metrics)?.[1]) / 1e6;
  const file = database.startsWith('sqlite:') ? database.slice('sqlite:'.length) : undefined;
  const sizeOf = (name: string) => (file ? statSync(name).size / 1e6 : 0);
  return { heap, files: readdirSync(`/proc/${core.pid}/fd`).length, wal: sizeOf(`${file}-wal`), file: sizeOf(`${file}`) };
}
