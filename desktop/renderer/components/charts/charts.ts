type Segment = { series: number; from: number; height: number };
/** @property counts one per series, starting with the lowest in the chart */
export type DayCounts = { day: string; counts: readonly number[] };
type ChartColumn = DayCounts & { total: number; segments: Segment[] };
export type Chart = { columns: ChartColumn[]; total: number; highest: ChartColumn | null };

/** The minimum height of a count above zero, so that one call among thousands is visible. */
const minHeight = 1.5;

/** Computes the columns of stacked counts, from 0 at the base to 100 for the highest day. */
export function stack(days: readonly DayCounts[]): Chart {
  const totals = days.map(({ counts }) => sum(counts));
  const max = Math.max(...totals, 1);
  const columns = days.map((day, index) => ({ ...day, total: totals[index] ?? 0, segments: toSegments(day.counts, max) }));
  const highest = columns.reduce<ChartColumn | null>((best, column) => (column.total > (best?.total ?? 0) ? column : best), null);
  return { columns, total: sum(totals), highest };
}

function toSegments(counts: readonly number[], max: number): Segment[] {
  let from = 0;
  return counts.flatMap((count, series) => {
    if (count === 0) return [];
    const segment = { series, from, height: Math.max(minHeight, (count / max) * 100) };
    from += segment.height;
    return [segment];
  });
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/**
 * Formats shares as whole percentages that add up to 100: "71%", or "<1%" for a small share. The shares that lose the most by rounding down
 * get one percentage point more.
 */
export function percentages(parts: readonly number[]): string[] {
  const whole = sum(parts) || 1;
  const exact = parts.map((part) => (part / whole) * 100);
  const missing = Math.round(sum(exact)) - sum(exact.map(Math.floor));
  const byLoss = exact.map((_, index) => index).toSorted((a, b) => ((exact[b] ?? 0) % 1) - ((exact[a] ?? 0) % 1));
  const rounded = exact.map((share, index) => Math.floor(share) + (byLoss.indexOf(index) < missing ? 1 : 0));
  return rounded.map((share, index) => `${share === 0 && (parts[index] ?? 0) > 0 ? '<1' : share}%`);
}
