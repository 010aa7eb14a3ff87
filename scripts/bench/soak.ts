import { readdirSync } from 'node:fs';
import { databaseVersion, describeOrigin, openStage } from './environment.ts';
import { count, databaseLabel, formatDate, withGoal } from './pages.ts';
import { readMegabytes, watchOtherLoad } from './proc.ts';
import type { DatabaseKind } from './processes.ts';
import { computeSpread, repeat, say, slopeWithRange } from './spread.ts';
import { load, type Target } from './wrk.ts';

/** The memory in MB after this many seconds. */
type Sample = { seconds: number; rss: number };

type Soak = Awaited<ReturnType<typeof soak>>;

const connections = 64;

/** Loads a core with half of the requests that it can handle, and records its memory, files and response times. Needs Linux. */
export async function soak(kind: DatabaseKind, minutes: number) {
  const { machine, ...origin } = await describeOrigin();
  await using stage = await openStage(kind);
  const about = { ...origin, machine: { ...machine, [kind]: await databaseVersion(stage) }, database: kind };
  const { core, path, key, unknown } = stage;
  const target = (seconds: number, pauseMs: number): Target => {
    return { server: core, kind: 'mix', parameters: [path, key, unknown[0] ?? '', String(pauseMs)], successes: 0.75, connections, seconds };
  };
  const { perSecond: peakPerSecond } = await load(target(20, 0));
  // With this pause, each connection sends half as many requests as it can.
  const pauseMs = Math.round((connections / peakPerSecond) * 1_000);
  const watch = watchOtherLoad(true);
  const samples: Sample[] = [];
  const start = performance.now();
  const sample = () => samples.push({ seconds: Math.round((performance.now() - start) / 1_000), rss: readMegabytes(core.pid) });
  const timer = setInterval(sample, 10_000);
  const measured = await repeat(minutes, async (before) => {
    const loaded = await load(target(60, pauseMs), before + 1);
    say(`minute ${before + 1}: ${samples.at(-1)?.rss.toFixed(1)} MB, ${Math.round(loaded.perSecond)} requests per second`);
    return { minute: before + 1, ...loaded, files: readdirSync(`/proc/${core.pid}/fd`).length };
  });
  clearInterval(timer);
  watch.stop();
  return { ...about, peakPerSecond, otherLoad: watch.max, memory: memoryOver(samples), minutes: measured, samples };
}

/**
 * Determines whether memory is flat. It is if even the highest estimate of its slope is less than 5 MB per hour, ignoring the first sixth of
 * the run.
 */
export function memoryOver(samples: readonly Sample[]) {
  const warmUp = (samples.at(-1)?.seconds ?? 0) / 6;
  const points = samples.filter(({ seconds }) => seconds > warmUp).map(({ seconds, rss }) => ({ x: seconds / 3_600, y: rss }));
  const slope = slopeWithRange(points);
  const peak = Math.max(...samples.map(({ rss }) => rss));
  return { warmUpMinutes: Math.round(warmUp / 60), ...slope, peak, isFlat: slope.max < 5 };
}

export function soakSection({ at, commit, database, minutes, memory, otherLoad }: Soak): string {
  const { slope, min, max, peak, isFlat, warmUpMinutes } = memory;
  const median = (name: 'perSecond' | 'p99') => computeSpread(minutes.map((minute) => minute[name])).median;
  return `${databaseLabel(database)}, ${formatDate(at)}, commit ${commit}: ${minutes.length} minutes of placing, cancelling and refusing at ${count(median('perSecond'))} requests per second.
Memory ${isFlat ? 'is flat' : 'is **not flat**'}: after ${warmUpMinutes} minutes, it grows by ${slope.toFixed(1)} MB per hour (${min.toFixed(1)} to ${max.toFixed(1)}), and it never exceeds ${peak.toFixed(0)} MB (goal: ${withGoal('< 200 MB', peak)}).
p99 ${median('p99').toFixed(1)} ms; ${minutes.at(-1)?.files} open files at the end; other programs used at most ${otherLoad.others.toFixed(2)} of a processor.\n`;
}
