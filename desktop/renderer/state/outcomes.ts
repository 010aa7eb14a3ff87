import type { CallsSummaryView } from '#contract/console.ts';
import type { CallState } from '#contract/states.ts';
import { type DayCounts, sum } from './charts.ts';

/** The parts of the chart of outcomes, from the base up. */
export const outcomeGroups: readonly { name: string; label: string; states: readonly CallState[] }[] = [
  { name: 'completed', label: 'Completed', states: ['completed'] },
  { name: 'unanswered', label: 'No answer, busy', states: ['no_answer', 'busy'] },
  { name: 'failed', label: 'Failed, unknown', states: ['failed', 'unknown'] },
  { name: 'undialed', label: 'Cancelled, lapsed', states: ['cancelled', 'lapsed'] },
  { name: 'waiting', label: 'Queued, dialing', states: ['queued', 'dialing'] },
];

/** The calls of each day, counted by group. */
export function outcomesByDay({ days }: CallsSummaryView): DayCounts[] {
  return days.map(({ day, states }) => ({
    day,
    counts: outcomeGroups.map((group) => sum(group.states.map((state) => states[state] ?? 0))),
  }));
}
