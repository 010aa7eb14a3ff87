type Segment = { series: number; from: number; height: number };
/** @property counts one per series, the lowest first */
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

/** Formats a share as a whole percentage: "71 %", or "< 1 %" for a small share. */
export function percent(part: number, whole: number): string {
  const rounded = whole === 0 ? 0 : Math.round((part / whole) * 100);
  return `${rounded === 0 && part > 0 ? '< 1' : rounded} %`;
}
