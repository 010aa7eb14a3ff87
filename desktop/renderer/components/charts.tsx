import type { CallsSummaryView } from '#contract/console/calls.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { type Chart, describeAnswered, outcomeGroups, outcomesByDay, percentages, stack, sum } from '../state/calls.ts';
import { formatIsoDay } from '../state/format.ts';
import { isSmall } from './popovers.tsx';
import { Moment } from './time.tsx';

/**
 * @property summary null until it has loaded. The chart's space is already reserved, so that the list doesn't move
 * @property isLoading whether the counts are still those of another filter
 * @property filter which calls are counted; if it's empty, all calls of the last 30 days
 * @property day the chosen day; empty for all days
 * @property note what's missing from the counts
 */
type OutcomeChartProps = {
  summary: CallsSummaryView | null;
  isLoading: boolean;
  day: string;
  filter?: Readonly<Record<string, string | null>> & { from: string; to: string };
  note?: string;
  onChoose: (day: string) => void;
};

export function OutcomeChart({ summary, isLoading, day, filter, note = '', onChoose }: OutcomeChartProps) {
  const chart = stack(summary ? outcomesByDay(summary) : []);
  const isFiltered = filter !== undefined && Object.values(filter).some((value) => value !== null && value !== '');
  if (summary && chart.total === 0 && !isFiltered) return null;
  const [first, final] = [chart.columns[0], chart.columns.at(-1)];
  const hasRange = filter !== undefined && (filter.from !== '' || filter.to !== '');
  const days = hasRange && first && final ? `${formatIsoDay(first.day)} – ${formatIsoDay(final.day)}` : 'Last 30 days';
  const chosen = chart.columns.find((column) => column.day === day);
  const shown = chosen ? [chosen] : chart.columns;
  const groups = outcomeGroups.map((group, index) => ({ ...group, count: sum(shown.map(({ counts }) => counts[index] ?? 0)) }));
  const shares = percentages(groups.map(({ count }) => count));
  const answered = describeAnswered((summary?.days ?? []).filter((each) => !chosen || each.day === day));
  const legend = groups.map((group, index) => ({ ...group, share: shares[index] })).filter(({ count }) => !isFiltered || count > 0);
  const label = hasRange ? `Outcomes, ${days}` : 'Outcomes in the last 30 days';
  const outcomes = (
    <section class="outcomes" aria-label={label} aria-busy={isLoading}>
      <DayChart
        chart={chart}
        colors={outcomeGroups.map(({ name }) => name)}
        what="calls"
        height={110}
        labels={outcomeGroups.map(({ label }) => label)}
        text={`${counted(chart.total, 'call')} placed ${hasRange ? `on ${days}` : 'in the last 30 days'}, by day and outcome`}
        chosen={chosen?.day}
        onChoose={(pressed) => onChoose(pressed === day ? '' : pressed)}
      />
      <div>
        <h2>{chosen ? formatIsoDay(chosen.day) : days}</h2>
        <ul class="legend stack-close">
          {legend.map(({ name, label, count, share }) => (
            <li key={name}>
              <svg viewBox="0 0 10 10" aria-hidden="true" focusable="false">
                <rect fill={`var(--${name})`} width="10" height="10" rx="3" />
              </svg>
              <span>
                {label}
                {name === 'completed' && answered !== '' && <span class="caption">{answered}</span>}
              </span>
              <span class="end">{summary && `${formatCount(count)} · ${share}`}</span>
            </li>
          ))}
        </ul>
        {note !== '' && <p class="hint">{note}</p>}
        {summary?.countedBackTo !== undefined && (
          <p class="hint">
            Counts only calls placed since <Moment at={summary.countedBackTo} />
          </p>
        )}
      </div>
    </section>
  );
  if (!isSmall.value) return outcomes;
  return (
    <details>
      <summary>{label}</summary>
      {outcomes}
    </details>
  );
}

type DayChartProps = {
  chart: Chart;
  /** The custom property with the color of each series. */
  colors: readonly string[];
  labels?: readonly string[];
  /** What the numbers count: "placed". */
  what: string;
  /** In pixels. */
  height: number;
  /** A text version of the chart. */
  text: string;
  chosen?: string | undefined;
  onChoose?: (day: string) => void;
};

const step = 10;
const gap = 2;

/** Shows a column per day, with the highest count as the scale. A tooltip says what a column consists of; screen readers read `text`. */
export function DayChart({ chart: { columns, highest }, colors, labels, what, height, text, chosen, onChoose }: DayChartProps) {
  const [first, last] = [columns[0], columns.at(-1)];
  return (
    <div class="chart">
      <div class="scale" aria-hidden="true">
        <span>{highest && formatCount(highest.total)}</span>
        <span>0</span>
      </div>
      <svg role="img" aria-label={text} viewBox={`0 0 ${columns.length * step} 100`} height={height} preserveAspectRatio="none">
        {columns.map(({ day, total, counts, segments }, index) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: Keyboard users choose the day from a list instead.
          <g
            key={day}
            class={day === chosen ? 'chosen' : undefined}
            data-tip={[
              `${formatIsoDay(day)}: ${formatCount(total)} ${what}`,
              ...(labels ?? []).flatMap((label, series) => (counts[series] ? [`${label}: ${formatCount(counts[series])}`] : [])),
            ].join('\n')}
            onClick={onChoose && (() => onChoose(day))}
          >
            <rect class="hit" fill="transparent" x={index * step} y={0} width={step} height={100} />
            {segments.map(({ series, from, height: part }) => (
              <rect
                key={series}
                fill={`var(--${colors[series]})`}
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
