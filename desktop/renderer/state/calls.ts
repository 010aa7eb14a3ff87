import { DateTime } from 'luxon';
import type { CallState } from '#contract/calls/states.ts';
import type { AllCallsSummaryView, CallsSummaryView, CallView } from '#contract/console/calls.ts';
import { formatCount } from '#contract/text/count.ts';
import { formatMinute } from './format.ts';
import { capitalized } from './labels.ts';

type HeldCall = Pick<CallView, 'heldUntil' | 'heldFor' | 'heldZone' | 'lapses' | 'lastCalledAt'>;

/**
 * Says what holds a call, and until when: "held until 24 Nov 2026, 09:00 Europe/Berlin" by calling hours. How long a stop or a pace holds it
 * isn't known. For contact limits, it also says when the number was last called.
 *
 * @param ownZone used instead if the number may be in several zones
 */
export function describeHeld({ heldUntil, heldFor, heldZone, lapses, lastCalledAt }: HeldCall, ownZone: string): string | null {
  if (heldFor === 'stop') return 'held because dialing is stopped';
  if (heldFor === 'pace') return 'waiting for its turn in the pace';
  if (!heldUntil) return null;
  const until = DateTime.fromISO(heldUntil, { zone: heldZone ?? ownZone });
  const time = `${formatMinute(until)} ${until.zoneName}`;
  if (heldFor === null) return `held until ${time}`;
  const called =
    lastCalledAt && `: this number was called ${describeLastCall(DateTime.fromISO(lastCalledAt, { zone: until.zone }), until)}`;
  return lapses
    ? `will lapse at ${time} because of the contact limits${called ?? ''}`
    : `held until ${time}${called ?? ' by the contact limits'}`;
}

function describeLastCall(at: DateTime, until: DateTime): string {
  return at.hasSame(until, 'day') ? `at ${at.toFormat('HH:mm')}` : `on ${formatMinute(at)}`;
}

type DetailedCall = Pick<CallView, 'state' | 'contact' | 'detail'>;

/** Returns a call's detail. A cancelled call has none only if it was cancelled with a key, which isn't recorded, or if its data was erased. */
export function describeDetail({ state, contact, detail }: DetailedCall): string | null {
  if (detail !== null || state !== 'cancelled' || contact.phone === null) return detail;
  return 'By a request with an API key.';
}

/** Says why a call waits, or how it ended. A retry may be held, too, and its detail says why it's retried. */
export function describeState(call: HeldCall & DetailedCall, ownZone: string): string | null {
  const parts = [describeHeld(call, ownZone), describeDetail(call)].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(' · ');
}

/** Returns the time from dialing to the end; null if a call wasn't dialed or hasn't ended. */
export function callDurationMs({ dialedAt, endedAt }: Pick<CallView, 'dialedAt' | 'endedAt'>): number | null {
  return dialedAt === null || endedAt === null ? null : Math.max(0, Date.parse(endedAt) - Date.parse(dialedAt));
}

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

export function combineCampaigns({ days, ...rest }: AllCallsSummaryView): CallsSummaryView {
  return {
    ...rest,
    days: days.map(({ day, campaigns }) => {
      const answeredBy = sumByName(campaigns.map((each) => each.answeredBy ?? {}));
      return { day, states: sumByName(campaigns.map(({ states }) => states)), answeredBy };
    }),
  };
}

/** Counts each campaign's calls by group, for one day, or for all days if `day` is empty. @returns a function that takes a campaign's ID */
export function outcomesByCampaign({ days }: AllCallsSummaryView, day: string): (campaignId: string) => number[] {
  const counted = days.filter((each) => day === '' || each.day === day).flatMap(({ campaigns }) => campaigns);
  const byId = Map.groupBy(counted, ({ id }) => id);
  return (campaignId) => countByGroup(sumByName((byId.get(campaignId) ?? []).map(({ states }) => states)));
}

type Days = CallsSummaryView['days'];
type States = Days[number]['states'];

function sumByName(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const [name, count] of all.flatMap((counts) => Object.entries(counts))) total[name] = (total[name] ?? 0) + count;
  return total;
}

/** Says who answered the completed calls: "Person 80, machine 30"; empty if that isn't known of any. */
export function describeAnswered(days: Days): string {
  const counts = sumByName(days.map(({ answeredBy }) => answeredBy ?? {}));
  const known = ['person', 'machine'].flatMap((who) => (counts[who] ? [`${who} ${formatCount(counts[who])}`] : []));
  return capitalized(known.join(', '));
}

function countByGroup(states: States): number[] {
  return outcomeGroups.map((group) => sum(group.states.map((state) => states[state] ?? 0)));
}

export function outcomesByDay({ days }: CallsSummaryView): DayCounts[] {
  return days.map(({ day, states }) => ({ day, counts: countByGroup(states) }));
}

type Segment = { series: number; from: number; height: number };
/** @property counts one per series, starting with the lowest in the chart */
type DayCounts = { day: string; counts: readonly number[] };
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

/** Formats shares as whole percentages. Each is rounded by itself, so equal counts look equal. Their sum may differ from 100. */
export function percentages(parts: readonly number[]): string[] {
  const whole = sum(parts) || 1;
  return parts.map((part) => {
    const share = Math.round((part / whole) * 100);
    return `${share === 0 && part > 0 ? '<1' : share}%`;
  });
}
