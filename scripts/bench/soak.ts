import { readdirSync, statSync } from 'node:fs';
import { type DatabaseKind, databaseVersion, describeOrigin, type Origin, openStage, type Stage } from './environment.ts';
import { type OtherLoad, watchOtherLoad } from './load-guard.ts';
import { count, databaseLabel, formatDate, missed } from './markdown.ts';
import { readMegabytes } from './proc.ts';
import { mixing } from './requests.ts';
import { computeSpread, repeat, slopeWithRange } from './spread.ts';
import type { Say } from './workloads.ts';
import { type Load, load } from './wrk.ts';

/** The memory in MB after this many seconds. */
type Sample = { seconds: number; rss: number };
/** The measurements of one minute of load. Sizes are in MB. */
type Minute = Load & { minute: number; heap: number; files: number; wal: number; file: number };
/** The slope, with its range, in MB per hour. */
type Memory = { warmUpMinutes: number; slope: number; min: number; max: number; peak: number; isFlat: boolean };

export type Soak = Origin & {
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
/** In MB per hour. Smaller slopes count as flat. */
const flat = 5;

/** Loads a core with half of the requests that it can handle, and records its memory, files and response times. Needs Linux. */
export async function soak(kind: DatabaseKind, minutes: number, say: Say): Promise<Soak> {
  const { machine, ...origin } = await describeOrigin();
  const stage = await openStage(kind);
  const about = { ...origin, machine: { ...machine, [kind]: await databaseVersion(stage) }, database: kind };
  const target = (pauseMs: number) => mixing(stage.core.url, stage.path, stage.key, stage.unknown[0] ?? '', pauseMs);
  const { perSecond: peakPerSecond } = await load(target(0), 20, 0, connections);
  // With this pause, each connection sends half as many requests as it can.
  const pauseMs = Math.round((connections / peakPerSecond) * 1_000);
  const watch = watchOtherLoad(true);
  const samples: Sample[] = [];
  const start = performance.now();
  const sample = () => samples.push({ seconds: Math.round((performance.now() - start) / 1_000), rss: readMegabytes(stage.core.pid) });
  const timer = setInterval(sample, sampleEvery);
  const measured = await repeat(minutes, async (before) => {
    const minute = { minute: before + 1, ...(await load(target(pauseMs), 60, before + 1, connections)), ...(await sizes(stage)) };
    say(`minute ${minute.minute}: ${samples.at(-1)?.rss.toFixed(1)} MB, ${Math.round(minute.perSecond)} requests per second`);
    return minute;
  });
  clearInterval(timer);
  watch.stop();
  await stage.close();
  return { ...about, peakPerSecond, otherLoad: watch.max, memory: memoryOver(samples), minutes: measured, samples };
}

/** Determines whether memory is flat. It is if even the highest estimate of its slope is small, ignoring the first sixth of the run. */
export function memoryOver(samples: readonly Sample[]): Memory {
  const warmUp = (samples.at(-1)?.seconds ?? 0) / 6;
  const points = samples.filter(({ seconds }) => seconds > warmUp).map(({ seconds, rss }) => ({ x: seconds / 3_600, y: rss }));
  const slope = slopeWithRange(points);
  const peak = Math.max(...samples.map(({ rss }) => rss));
  return { warmUpMinutes: Math.round(warmUp / 60), ...slope, peak, isFlat: slope.max < flat };
}

async function sizes({ kind, core, database }: Stage): Promise<Pick<Minute, 'heap' | 'files' | 'wal' | 'file'>> {
  const metrics = await (await fetch(`${core.managementUrl}/metrics`)).text();
  const heap = Number(/^nodejs_heap_size_used_bytes (\S+)/m.exec(metrics)?.[1]) / 1e6;
  const fileSize = (suffix: string) => (kind === 'sqlite' ? statSync(database.slice('sqlite:'.length) + suffix).size / 1e6 : 0);
  return { heap, files: readdirSync(`/proc/${core.pid}/fd`).length, wal: fileSize('-wal'), file: fileSize('') };
}

export function soakSection({ at, commit, database, minutes, memory, otherLoad }: Soak): string {
  const { slope, min, max, peak, isFlat, warmUpMinutes } = memory;
  const median = (name: 'perSecond' | 'p99') => computeSpread(minutes.map((minute) => minute[name])).median;
  return `${databaseLabel(database)}, ${formatDate(at)}, commit ${commit}: ${minutes.length} minutes of placing, cancelling and refusing at ${count(median('perSecond'))} requests per second.
Memory ${isFlat ? 'is flat' : 'is **not flat**'}: after ${warmUpMinutes} minutes, it grows by ${slope.toFixed(1)} MB an hour (${min.toFixed(1)} to ${max.toFixed(1)}), and it never exceeds ${peak.toFixed(0)} MB (goal: < 200 MB${missed(peak < 200)}).
p99 ${median('p99').toFixed(1)} ms; ${minutes.at(-1)?.files} open files at the end; other work took at most ${otherLoad.others.toFixed(2)} of a processor.\n`;
}
