import type { CallState } from '#contract/calls.ts';
import { byDay, chartDays, startOf } from './days.ts';
import type { CallDetails, CallFilter, ListedCall, Viewer } from './model.ts';
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

export type DayOfCalls = { day: string; states: Partial<Record<CallState, number>> };

/** In which states the calls of a campaign are now, by the day of a zone on which they were placed. */
export async function summarizeCalls(ports: Ports, viewer: Viewer, campaignId: string, timeZone: string): Promise<DayOfCalls[]> {
  await requireCampaign(ports, viewer, campaignId);
  const days = chartDays(ports.clock.now(), timeZone);
  const found = await ports.stores.callList.summary(campaignId, startOf(days));
  return byDay(days, found).map(({ day, counts }) => {
    const states: DayOfCalls['states'] = {};
    for (const { state, calls } of counts) states[state] = (states[state] ?? 0) + calls;
    return { day, states };
  });
}

async function requireCampaign(ports: Ports, viewer: Viewer, campaignId: string): Promise<void> {
  const isInScope = await ports.stores.callList.hasCampaign(scopeOf(viewer).campaigns, campaignId);
  if (!isInScope) throw new Problem('not-found', 'There is no such campaign in your scope.');
}
