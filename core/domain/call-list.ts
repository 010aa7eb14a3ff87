import type { CallState } from '#contract/calls.ts';
import { byDay, chartDays, startOf } from './days.ts';
import type { CallCount, CallDetails, CallFilter, ListedCall, Viewer } from './model.ts';
import { type Page, pageOf, rowsForPage } from './paging.ts';
import type { Ports } from './ports.ts';
import { Problem } from './problem.ts';
import { scopeOf } from './scope.ts';

/** The calls of a campaign with their outcomes, which no key-authenticated request can read. */
export async function listCalls(ports: Ports, viewer: Viewer, campaignId: string, filter: CallFilter): Promise<Page<ListedCall>> {
  await requireCampaign(ports, viewer, campaignId);
  const calls = await ports.stores.callList.list(campaignId, filter, scopeOf(viewer).apiKeys, rowsForPage);
  return pageOf(calls, ({ contactId }) => contactId);
}

export async function showCall(ports: Ports, viewer: Viewer, campaignId: string, contactId: string): Promise<CallDetails> {
  await requireCampaign(ports, viewer, campaignId);
  const call = await ports.stores.callList.find(campaignId, contactId, scopeOf(viewer).apiKeys);
  if (!call) throw new Problem('not-found', 'This campaign has no such call.');
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

/** The same of every campaign that the viewer sees. */
export async function summarizeAllCalls(ports: Ports, viewer: Viewer, timeZone: string): Promise<DayOfCampaigns[]> {
  const days = chartDays(ports.clock.now(), timeZone);
  const starts = days.map(({ from }) => from);
  const found = await ports.stores.callList.summaryOfAll(scopeOf(viewer).campaigns, starts);
  return byDay(days, found).map(({ day, counts }) => {
    const ofCampaign = Map.groupBy(counts, ({ campaignId }) => campaignId);
    return { day, campaigns: [...ofCampaign].map(([id, own]) => ({ id, states: byState(own) })) };
  });
}

function byState(counts: readonly CallCount[]): CallsByState {
  const states: CallsByState = {};
  for (const { state, calls } of counts) states[state] = (states[state] ?? 0) + calls;
  return states;
}

async function requireCampaign(ports: Ports, viewer: Viewer, campaignId: string): Promise<void> {
  const isInScope = await ports.stores.callList.hasCampaign(scopeOf(viewer).campaigns, campaignId);
  if (!isInScope) throw new Problem('not-found', 'There is no such campaign in your scope.');
}
