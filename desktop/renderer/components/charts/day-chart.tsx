import { formatNumber } from '../../state/format/format.ts';
import { formatIsoDay } from '../../state/format/format-time.ts';
import type { Chart } from './charts.ts';

type DayChartProps = {
  chart: Chart;
  /** The CSS class of each series. */
  classes: readonly string[];
  /** What the numbers count: "placed". */
  what: string;
  /** In pixels. */
  height: number;
  /** A text version of the chart. */
  text: string;
  /** The highlighted day. */
  chosen?: string | undefined;
  onChoose?: (day: string) => void;
};

const step = 10;
const gap = 2;

/** A chart with a column per day. Each column's tooltip shows its total, and screen readers read `text`. */
export function DayChart({ chart: { columns }, classes, what, height, text, chosen, onChoose }: DayChartProps) {
  const [first, last] = [columns[0], columns.at(-1)];
  return (
    <div class="chart">
      <svg role="img" aria-label={text} viewBox={`0 0 ${columns.length * step} 100`} height={height} preserveAspectRatio="none">
        {columns.map(({ day, total, segments }, index) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: Keyboard users choose the day from a list instead.
          <g
            key={day}
            class={day === chosen ? 'chosen' : undefined}
            data-tip={`${formatIsoDay(day)}: ${formatNumber(total)} ${what}`}
            onClick={onChoose && (() => onChoose(day))}
          >
            <rect class="hit" x={index * step} y={0} width={step} height={100} />
            {segments.map(({ series, from, height: part }) => (
              <rect
                key={series}
                class={classes[series] ?? ''}
                x={index * step + gap / 2}
                y={Math.max(0, 100 - from - part)}
                width={step - gap}
                height={part}
              />
            ))}
          </g>
        ))}
      </svg>
      <div class="axis" aria-hidden="true">
        <span>{first ? formatIsoDay(first.day) : '\u00a0'}</span>
        <span>{last && formatIsoDay(last.day)}</span>
      </div>
    </div>
  );
}
