import { table, withRange } from './markdown.ts';
import type { CostedLoad } from './proc.ts';
import { computeSpread, repeat } from './spread.ts';

type Pair<Result> = readonly [Result, Result];

/** Measures two sides alternately. @returns the rounds, without the first, which only warms up code and caches */
export async function inPairs<Side, Result>(
  [first, second]: readonly [Side, Side],
  rounds: number,
  measure: (side: Side, round: number) => Promise<Result>,
): Promise<Pair<Result>[]> {
  const pairs = await repeat(rounds + 1, async (round): Promise<Pair<Result>> => {
    // The sides take turns going first.
    const later = round % 2 === 0 ? undefined : await measure(second, round);
    const result = await measure(first, round);
    return [result, later ?? (await measure(second, round))];
  });
  return pairs.slice(1);
}

/** Builds a line that compares the CPU time and speed of both sides. In each pair, it divides the second side by the first. */
export function compare(name: string, database: string, pairs: readonly Pair<CostedLoad>[]): string[] {
  const totalCpu = ({ cpu }: CostedLoad) => (cpu ? cpu.main + cpu.rest + cpu.postgres : Number.NaN);
  const formatRatio = (get: (load: CostedLoad) => number) =>
    withRange(computeSpread(pairs.map(([before, after]) => get(after) / get(before))), 3);
  const medians = [0, 1].map((side) => computeSpread(pairs.map((pair) => totalCpu(side === 0 ? pair[0] : pair[1]))).median.toFixed(1));
  return [name, database, ...medians, formatRatio(totalCpu), formatRatio(({ perSecond }) => perSecond)];
}

/** @param before the title of the first side @param after the title of the second side */
export function comparisonTable(lines: readonly (readonly string[])[], before: string, after: string): string {
  const ratio = `${after} / ${before} (range)`;
  return table(['', 'database', `CPU µs per request, ${before}`, after, `CPU, ${ratio}`, `requests per second, ${ratio}`], lines);
}
