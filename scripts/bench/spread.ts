/** The median and the range of some values. `values` keeps the order of the measurements. */
export type Spread = { median: number; min: number; max: number; values: number[] };
export type Spreads<Name extends string> = Record<Name, Spread>;

export function computeSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return { median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, min: at(0), max: at(sorted.length - 1), values: [...values] };
}

/** Computes the spread of each member. All objects must have the same members. */
export function computeSpreads<Name extends string>(all: readonly Readonly<Record<Name, number>>[]): Spreads<Name> {
  const names = Object.keys(all[0] ?? {}) as Name[];
  return Object.fromEntries(names.map((name) => [name, computeSpread(all.map((values) => values[name]))])) as Spreads<Name>;
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

/** Reports progress. */
export const say = (line: string): boolean => process.stderr.write(`${line}\n`);

/** Measures how long work takes, in ms. */
export async function timed<Result>(work: () => Promise<Result>): Promise<{ result: Result; ms: number }> {
  const from = performance.now();
  const result = await work();
  return { result, ms: performance.now() - from };
}

/**
 * Measures several sides in turn, round after round, so that other work on the machine affects all of them equally. The order alternates.
 * Round 0 only warms up code and caches, so its figures are omitted.
 *
 * @returns the spreads of each side's figures, whose values are in the order of the rounds
 */
export async function inTurn<Name extends string, Side, Figure extends string>(
  sides: Readonly<Record<Name, Side>>,
  rounds: number,
  measure: (side: Side, round: number) => Promise<Readonly<Record<Figure, number>>>,
): Promise<Record<Name, Spreads<Figure>>> {
  const all = Object.entries<Side>(sides).map(([name, side]) => ({ name, side, results: [] as Readonly<Record<Figure, number>>[] }));
  await repeat(rounds + 1, async (round) => {
    for (const { name, side, results } of round % 2 === 0 ? all : all.toReversed()) {
      const figures = await measure(side, round);
      if (round > 0) results.push(figures);
      const texts = Object.entries<number>(figures).map(([figure, value]) => `${figure} ${Number(value.toPrecision(3))}`);
      say(`round ${round} of ${rounds}: ${name}: ${texts.join(', ')}`);
    }
  });
  return Object.fromEntries(all.map(({ name, results }) => [name, computeSpreads(results)])) as Record<Name, Spreads<Figure>>;
}

type Point = { x: number; y: number };

/** Computes the slope of the straight line that fits best (least squares). */
export function fitSlope(points: readonly Point[]): number {
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)];
  return mean((point) => (point.x - x) * (point.y - y)) / mean((point) => (point.x - x) ** 2);
}

/** Computes the slope of all points, and the range of the slopes if each consecutive tenth of the points is omitted in turn. */
export function slopeWithRange(points: readonly Point[]): { slope: number; min: number; max: number } {
  const tenth = Math.ceil(points.length / 10);
  const without = Array.from({ length: 10 }, (_, omitted) => fitSlope(points.filter((_point, n) => Math.floor(n / tenth) !== omitted)));
  return { slope: fitSlope(points), min: Math.min(...without), max: Math.max(...without) };
}

// How figures are written.

export const databaseLabel = (database: string) => ({ sqlite: 'SQLite', postgres: 'PostgreSQL' })[database] ?? '';
export const count = (value: number) => Math.round(value).toLocaleString('en');
export const counts = ({ median, min, max }: Spread) => `${count(median)} (${count(min)} to ${count(max)})`;
export const range = ({ min, max }: Spread, digits = 2) => `${min.toFixed(digits)} to ${max.toFixed(digits)}`;
export const withRange = (spread: Spread, digits = 2) => `${spread.median.toFixed(digits)} (${range(spread, digits)})`;
export const formatDate = (at: string) =>
  new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

/** @param goal such as `≤ 0.5 ms` */
export function reaches(goal: string, value: number): boolean {
  const limit = Number(/[\d.]+/.exec(goal)?.[0]);
  return goal.startsWith('≥') ? value >= limit : goal.startsWith('<') ? value < limit : value <= limit;
}

/** Returns the goal, if there is one, and says if a value misses it. */
export const withGoal = (goal: string, value: number) => (goal === '' || reaches(goal, value) ? goal : `${goal}, **missed**`);

export function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return `${[head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

/** Builds a table with a line for each row. @param columns their titles, and functions that format their cells */
export function tableOf<Row>(rows: readonly Row[], columns: Readonly<Record<string, (row: Row) => string>>): string {
  return table(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((format) => format(row))),
  );
}
