import type { DateTime } from 'luxon';
import type { CallState } from '#contract/calls.ts';
import { byDay, chartDays, startOf } from './days.ts';
import type { CallCount, CallDetails, CallFilter, ListedCall, ListFilter, Viewer } from './model.ts';
import { type Page, pageOf, rowsForPage } from './paging.ts';
import type { Ports } from './ports.ts';
import { Problem } from './problem.ts';
import { scopeOf } from './scope.ts';
import { listCampaigns } from './tenancies.ts';

/** The calls of a campaign with their outcomes, which no key-authenticated request can read. */
export async function listCalls(ports: Ports, viewer: Viewer, campaignId: string, filter: CallFilter, turn: Turn): Promise<CallPage> {
  await requireCampaign(ports, viewer, campaignId);
  const calls: ListedCall[] = [];
  for (let { cursor } = filter; ; ) {
    const rows = rowsForPage - calls.length;
    const found = await ports.stores.callList.list(campaignId, { ...filter, cursor }, scopeOf(viewer).apiKeys, rows);
    calls.push(...found.calls);
    const { end } = found;
    if (calls.length === rowsForPage || end === null) return { ...pageOf(calls, ({ contactId }) => contactId), searchedBackTo: null };
    // A campaign may have ten million calls, and a match none of them: what was found until now is an answer, too.
    if (!(await turn.goOn())) return { items: calls, nextCursor: end.contactId, searchedBackTo: end.placedAt };
    cursor = end.contactId;
  }
}

/** @property searchedBackTo until when the calls were searched, if the search stopped before it had a whole page */
export type CallPage = Page<ListedCall> & { searchedBackTo: DateTime<true> | null };

/** A share of the database's time, for work that may take long. */
export type Turn = {
  /** Lets others go first. @returns false if the work has to end with what it has */
  goOn(): Promise<boolean>;
};

export async function showCall(ports: Ports, viewer: Viewer, campaignId: string, contactId: string): Promise<CallDetails> {
  await requireCampaign(ports, viewer, campaignId);
  const call = await ports.stores.callList.find(campaignId, contactId, scopeOf(viewer).apiKeys);
  if (!call) throw new Problem('not-found', "This call doesn't exist in this campaign.");
  return call;
}

type CallsByState = Partial<Record<CallState, number>>;
export type DayOfCalls = { day: string; states: CallsByState };
export type DayOfCampaigns = { day: string; campaigns: { id: string; states: CallsByState }[] };

/** In which states the calls of a campaign are now, by the day of a zone on which they were placed. */
export async function summarizeCalls(ports: Ports, viewer: Viewer, campaignId: string, timeZone: string): Promise<DayOfCalls[]> {
  await requireCampaign(ports, viewer, campaignId);
  const days = chartDays(ports.clock.now(), timeZone);
  const found = await ports.stores.callList.summary(campaignId, startOf(days));
  return byDay(days, found).map(({ day, counts }) => ({ day, states: byState(counts) }));
}

/** The same of each campaign on a page of those that the viewer sees. */
export async function summarizeAllCalls(ports: Ports, viewer: Viewer, timeZone: string, filter: ListFilter): Promise<DayOfCampaigns[]> {
  const days = chartDays(ports.clock.now(), timeZone);
  const starts = days.map(({ from }) => from);
  const campaigns = await listCampaigns(ports, viewer, filter);
  const found = await ports.stores.callList.summaryOfAll(
    campaigns.items.map(({ id }) => id),
    starts,
  );
  return byDay(days, found).map(({ day, counts }) => {
    const ofCampaign = Map.groupBy(counts, ({ campaignId }) => campaignId);
    return { day, campaigns: [...ofCampaign].map(([id, own]) => ({ id, states: byState(own) })) };
  });
}

function byState(counts: readonly CallCount[]): CallsByState {
  const states = new Map<CallState, number>();
  for (const { state, calls } of counts) states.set(state, (states.get(state) ?? 0) + calls);
  // None is left of a state that other calls have gone on from.
  return Object.fromEntries([...states].filter(([, calls]) => calls > 0));
}

async function requireCampaign(ports: Ports, viewer: Viewer, campaignId: string): Promise<void> {
  const isInScope = await ports.stores.callList.hasCampaign(scopeOf(viewer).campaigns, campaignId);
  if (!isInScope) throw new Problem('not-found', "This campaign doesn't exist, or you don't have access to it.");
}
