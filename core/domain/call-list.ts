import type { DateTime } from 'luxon';
import type { CallState } from '#contract/calls.ts';
import type { Named } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { type Page, pageOf } from './activity.ts';
import type { Ports } from './ports.ts';
import { Problem } from './problem.ts';
import { type CampaignAccess, type KeyVisibility, scopeOf, type Viewer } from './tenancy.ts';

export type ListedCall = {
  requestId: string;
  contactId: string;
  phone: string | null;
  name: string | null;
  state: CallState;
  detail: string | null;
  placedAt: DateTime;
  dialedAt: DateTime | null;
  endedAt: DateTime | null;
  /** The key that placed it, revoked or not; null where it is out of sight. */
  apiKey: (Named & { creator: Named }) | null;
  isSimulated: boolean;
};

export type CallFilter = { state: CallState | null; search: string; cursor: string | null };

export type CallListStore = {
  hasCampaign(reach: CampaignAccess, campaignId: string): Promise<boolean>;
  /** The newest first, from after the cursor. */
  list(campaignId: string, filter: CallFilter, sight: KeyVisibility, limit: number): Promise<ListedCall[]>;
};

/** A campaign's calls and what became of them: the only place where outcomes show. */
export async function listCalls(ports: Ports, viewer: Viewer, campaignId: string, filter: CallFilter): Promise<Page<ListedCall>> {
  const scope = scopeOf(viewer);
  const { callList } = ports.stores;
  if (!(await callList.hasCampaign(scope.campaigns, campaignId)))
    throw new Problem('not-found', 'There is no such campaign in your scope.');
  return pageOf(await callList.list(campaignId, filter, scope.apiKeys, limits.page + 1), ({ contactId }) => contactId);
}
