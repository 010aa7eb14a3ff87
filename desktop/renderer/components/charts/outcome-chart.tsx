import { useRef } from 'preact/hooks';
import type { CallsSummaryView } from '#contract/console/calls.ts';
import { formatNumber, pluralize } from '../../state/format/format.ts';
import { formatIsoDay } from '../../state/format/format-time.ts';
import { Moment } from '../time.tsx';
import { percentages, stack, sum } from './charts.ts';
import { DayChart } from './day-chart.tsx';
import { outcomeGroups, outcomesByDay } from './outcomes.ts';

/**
 * @property summary null while it's loading. The chart's space is already reserved, so that the list doesn't move
 * @property filter which calls are counted; if it's empty, all calls of the last 30 days
 * @property day the chosen day; empty for all days
 * @property note what's missing from the counts
 */
type OutcomeChartProps = {
  summary: CallsSummaryView | null;
  day: string;
  filter?: Readonly<Record<string, string | null>> & { from: string; to: string };
  note?: string;
  onChoose: (day: string) => void;
};

/** Shows the outcomes of calls by the day they were placed, for all days or the one that the user chooses. */
export function OutcomeChart({ summary: loaded, day, filter, note = '', onChoose }: OutcomeChartProps) {
  // While the counts for another filter load, the previous counts are still shown.
  const last = useRef(loaded);
  if (loaded) last.current = loaded;
  const summary = last.current;
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
  return (
    <section class="outcomes" aria-label={hasRange ? `Outcomes, ${days}` : 'Outcomes in the last 30 days'} aria-busy={loaded === null}>
      <DayChart
        chart={chart}
        classes={outcomeGroups.map(({ name }) => name)}
        what="calls"
        height={110}
        text={`${pluralize(chart.total, 'call')} placed ${hasRange ? `on ${days}` : 'in the last 30 days'}, by day and outcome`}
        chosen={chosen?.day}
        onChoose={(pressed) => onChoose(pressed === day ? '' : pressed)}
      />
      <div>
        <select aria-label="Days" value={chosen?.day ?? ''} onChange={({ currentTarget }) => onChoose(currentTarget.value)}>
          <option value="">{days}</option>
          {chart.columns.toReversed().map((column, ago) => (
            <option key={column.day} value={column.day}>
              {!hasRange && ['Today, ', 'Yesterday, '][ago]}
              {formatIsoDay(column.day)}
            </option>
          ))}
        </select>
        <ul class="legend">
          {groups.map(({ name, label, count }, index) => (
            <li key={name}>
              <svg viewBox="0 0 10 10" aria-hidden="true" focusable="false">
                <rect class={name} width="10" height="10" rx="3" />
              </svg>
              {label}
              <span class="end">{summary && `${formatNumber(count)} · ${shares[index]}`}</span>
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
}
