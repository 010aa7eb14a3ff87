import * as echarts from 'echarts';
import type { Grown } from '../comparisons.ts';

const operations = [
  ['refuse', 'refuse an unknown key'],
  ['cancel', 'cancel'],
  ['place', 'place'],
] as const;

/** Draws the requests per second by the size of the tables, as SVG. */
export function plot(grown: readonly Grown[]): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: 800, height: 420 });
  const series = [...new Set(grown.map(({ database }) => database))].flatMap((database) =>
    operations.map(([operation, name]) => ({
      name: `${name}, ${database === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`,
      type: 'line' as const,
      lineStyle: { type: database === 'sqlite' ? ('solid' as const) : ('dashed' as const) },
      data: grown.filter((row) => row.database === database).map((row) => [row.size, Math.round(row[operation].median)]),
    })),
  );
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    color: ['#1b7837', '#b35806', '#2166ac'],
    title: { text: 'Requests per second, by keys and calls in the tables', left: 'center' },
    legend: { bottom: 0 },
    grid: { left: 70, right: 30, top: 50, bottom: 90 },
    xAxis: { type: 'log', name: 'keys, and as many calls', nameLocation: 'middle', nameGap: 28, min: 1_000 },
    yAxis: { type: 'value', min: 0 },
    series,
  });
  const svg = chart.renderToSVGString();
  // Otherwise, the chart would wait forever for the next frame, and the process wouldn't exit.
  chart.dispose();
  return svg;
}
