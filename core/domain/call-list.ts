import type { CallFilter, ListedCall, Viewer } from './model.ts';
import { type Page, pageOf, rowsForPage } from './paging.ts';
import type { Ports } from './ports.ts';
import { Problem } from './problem.ts';
import { scopeOf } from './scope.ts';

/** The calls of a campaign with their outcomes, which no key-authenticated request can read. */
export async function listCalls(ports: Ports, viewer: Viewer, campaignId: string, filter: CallFilter): Promise<Page<ListedCall>> {
  const scope = scopeOf(viewer);
  const { callList } = ports.stores;
  if (!(await callList.hasCampaign(scope.campaigns, campaignId)))
    throw new Problem('not-found', 'There is no such campaign in your scope.');
  return pageOf(await callList.list(campaignId, filter, scope.apiKeys, rowsForPage), ({ contactId }) => contactId);
}
