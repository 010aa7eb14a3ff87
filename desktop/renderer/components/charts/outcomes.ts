import { type CallState, callStates } from '#contract/calls/states.ts';
import type { AllCallsSummaryView, CallsSummaryView } from '#contract/console/calls.ts';
import { type DayCounts, sum } from './charts.ts';

/** The segments of the outcome chart, from the base up. */
export const outcomeGroups: readonly { name: string; label: string; states: readonly CallState[] }[] = [
  { name: 'completed', label: 'Completed', states: ['completed'] },
  { name: 'unanswered', label: 'No answer, busy', states: ['no_answer', 'busy'] },
  { name: 'failed', label: 'Failed, unknown', states: ['failed', 'unknown'] },
  { name: 'undialed', label: 'Cancelled, lapsed, blocked', states: ['cancelled', 'lapsed', 'blocked'] },
  { name: 'waiting', label: 'Queued, dialing', states: ['queued', 'dialing'] },
];

/** How often the chart refreshes. Less often than a list, because it counts a month of calls. */
export const summaryMs = 60_000;

/** Adds up the calls of all campaigns. */
export function combineCampaigns({ days, ...rest }: AllCallsSummaryView): CallsSummaryView {
  return { ...rest, days: days.map(({ day, campaigns }) => ({ day, states: sumByState(campaigns.map(({ states }) => states)) })) };
}

/** Counts each campaign's calls by group, for one day, or for all days if `day` is empty. @returns a function that takes a campaign's ID */
export function outcomesByCampaign({ days }: AllCallsSummaryView, day: string): (campaignId: string) => number[] {
  const counted = days.filter((each) => day === '' || each.day === day).flatMap(({ campaigns }) => campaigns);
  const byId = Map.groupBy(counted, ({ id }) => id);
  return (campaignId) => countByGroup(sumByState((byId.get(campaignId) ?? []).map(({ states }) => states)));
}

type States = CallsSummaryView['days'][number]['states'];

function sumByState(all: readonly States[]): States {
  const total: States = {};
  for (const states of all) for (const state of callStates) if (states[state]) total[state] = (total[state] ?? 0) + states[state];
  return total;
}

function countByGroup(states: States): number[] {
  return outcomeGroups.map((group) => sum(group.states.map((state) => states[state] ?? 0)));
}

/** Counts each day's calls by group. */
export function outcomesByDay({ days }: CallsSummaryView): DayCounts[] {
  return days.map(({ day, states }) => ({ day, counts: countByGroup(states) }));
}
