import { table, withRange } from './markdown.ts';
import type { CostedLoad } from './proc.ts';
import { repeat, spreadOf } from './spread.ts';

type Pair<Found> = readonly [Found, Found];

/** Measures two sides in turn. @returns the rounds, without the first, which only warms up code and caches */
export async function inPairs<Side, Found>(
  [one, other]: readonly [Side, Side],
  rounds: number,
  measure: (side: Side, round: number) => Promise<Found>,
): Promise<Pair<Found>[]> {
  const pairs = await repeat(rounds + 1, async (round): Promise<Pair<Found>> => {
    // The sides take turns going first.
    const later = round % 2 === 0 ? undefined : await measure(other, round);
    const found = await measure(one, round);
    return [found, later ?? (await measure(other, round))];
  });
  return pairs.slice(1);
}

/** Builds a line that compares the CPU time and speed of both sides, per pair: what was measured later, divided by what was before. */
export function compare(name: string, database: string, pairs: readonly Pair<CostedLoad>[]): string[] {
  const costOf = ({ cpu }: CostedLoad) => (cpu ? cpu.main + cpu.rest + cpu.postgres : Number.NaN);
  const ratioOf = (get: (load: CostedLoad) => number) => withRange(spreadOf(pairs.map(([one, other]) => get(other) / get(one))), 3);
  const medians = [0, 1].map((side) => spreadOf(pairs.map((pair) => costOf(side === 0 ? pair[0] : pair[1]))).median.toFixed(1));
  return [name, database, ...medians, ratioOf(costOf), ratioOf(({ perSecond }) => perSecond)];
}

/** @param before and @param after the titles of the sides */
export function comparisonTable(lines: readonly (readonly string[])[], before: string, after: string): string {
  const ratio = `${after} / ${before} (range)`;
  return table(['', 'database', `CPU µs per request, ${before}`, after, `CPU, ${ratio}`, `requests per second, ${ratio}`], lines);
}
