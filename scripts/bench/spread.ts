/** The median and the range of some values. `values` keeps the order of the measurements. */
export type Spread = { median: number; min: number; max: number; values: number[] };

export function computeSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return { median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, min: at(0), max: at(sorted.length - 1), values: [...values] };
}

/** Computes the spread of each of the named members. */
export function computeSpreads<Name extends string>(all: readonly Record<Name, number>[], names: readonly Name[]): Record<Name, Spread> {
  return Object.fromEntries(names.map((name) => [name, computeSpread(all.map((values) => values[name]))])) as Record<Name, Spread>;
}

/** Divides values by those that were measured in the same rounds. */
export function computeRatios(values: Spread, references: Spread): Spread {
  return computeSpread(values.values.map((value, round) => value / (references.values[round] ?? Number.NaN)));
}

export async function repeat<Result>(rounds: number, measure: (round: number) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (let round = 0; round < rounds; round++) results.push(await measure(round));
  return results;
}

/**
 * Measures the items in turn, round after round, so that other work on the machine affects all of them equally. @returns each item's rounds
 */
export async function inTurn<Item, Result>(
  items: readonly Item[],
  rounds: number,
  measure: (item: Item, round: number) => Promise<Result>,
) {
  const all = items.map((item) => ({ item, results: [] as Result[] }));
  await repeat(rounds, async (round) => {
    for (const { item, results } of all) results.push(await measure(item, round));
  });
  return all;
}

export type Point = { x: number; y: number };

/** Computes the slope of the straight line that fits best (least squares). */
export function fitSlope(points: readonly Point[]): number {
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)];
  return mean((point) => (point.x - x) * (point.y - y)) / mean((point) => (point.x - x) ** 2);
}

const blocks = 10;

/** Computes the slope of all points, and the range of the slopes if each consecutive tenth of the points is omitted in turn. */
export function slopeWithRange(points: readonly Point[]): { slope: number; min: number; max: number } {
  const size = Math.ceil(points.length / blocks);
  const without = Array.from({ length: blocks }, (_, block) => fitSlope(points.filter((_point, n) => Math.floor(n / size) !== block)));
  return { slope: fitSlope(points), min: Math.min(...without), max: Math.max(...without) };
}
