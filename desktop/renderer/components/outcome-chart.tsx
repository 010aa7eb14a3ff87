import type { CallsSummaryView } from '#contract/console.ts';
import { percent, stack, sum } from '../state/charts.ts';
import { formatNumber, pluralize } from '../state/format.ts';
import { outcomeGroups, outcomesByDay } from '../state/outcomes.ts';
import { DayChart } from './day-chart.tsx';

/** The outcomes of a campaign's calls, by the day they were placed. */
export function OutcomeChart({ summary }: { summary: CallsSummaryView }) {
  const chart = stack(outcomesByDay(summary));
  if (chart.total === 0) return null;
  const groups = outcomeGroups
    .map((group, index) => ({ ...group, count: sum(chart.columns.map(({ counts }) => counts[index] ?? 0)) }))
    .filter(({ name, count }) => count > 0 || name !== 'waiting');
  return (
    <section class="outcomes" aria-label="Outcomes of 30 days">
      <DayChart
        chart={chart}
        classes={outcomeGroups.map(({ name }) => name)}
        what="calls"
        height={110}
        text={`${pluralize(chart.total, 'call')} placed in 30 days, by day and outcome`}
      />
      <ul class="legend">
        {groups.map(({ name, label, count }) => (
          <li key={name}>
            <svg viewBox="0 0 10 10" aria-hidden="true" focusable="false">
              <rect class={name} width="10" height="10" rx="3" />
            </svg>
            {label}
            <span class="end">
              {formatNumber(count)} · {percent(count, chart.total)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
