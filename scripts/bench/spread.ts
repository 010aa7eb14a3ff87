/** The median and the range of some values, which are kept in the order in which they were measured. */
export type Spread = { median: number; min: number; max: number; values: number[] };

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return { median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, min: at(0), max: at(sorted.length - 1), values: [...values] };
}

/** The quotients of values that were measured in the same rounds. */
export function ratiosOf(values: Spread, references: Spread): Spread {
  return spreadOf(values.values.map((value, round) => value / (references.values[round] ?? Number.NaN)));
}

export type Point = { x: number; y: number };

/** The slope of the straight line that fits best (least squares). */
export function slopeOf(points: readonly Point[]): number {
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)];
  return mean((point) => (point.x - x) * (point.y - y)) / mean((point) => (point.x - x) ** 2);
}

const blocks = 10;

/** The slope of all points, with the range of the slopes that are left when any tenth of the points, in their order, is left out. */
export function slopeWithRange(points: readonly Point[]): Omit<Spread, 'values' | 'median'> & { slope: number } {
  const size = Math.ceil(points.length / blocks);
  const without = Array.from({ length: blocks }, (_, block) => slopeOf(points.filter((_point, n) => Math.floor(n / size) !== block)));
  return { slope: slopeOf(points), min: Math.min(...without), max: Math.max(...without) };
}
