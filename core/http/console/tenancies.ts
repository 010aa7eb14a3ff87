import type { AccountsView, CampaignsView } from '#contract/console/directory.ts';
import type { TenanciesView } from '#contract/console/session.ts';
import * as domain from '../../domain/directory/directory.ts';
import { tenancyView } from '../views.ts';
import type { Request } from './request.ts';

export async function searchTenancies({ ports, viewer, query }: Request<'searchTenancies'>): Promise<TenanciesView> {
  const tenancies = await domain.searchTenancies(ports, viewer, query.search);
  return { tenancies: tenancies.map(tenancyView) };
}

export async function listAccounts({ ports, viewer, query }: Request<'listAccounts'>): Promise<AccountsView> {
  const { items, nextCursor } = await domain.listAccounts(ports, viewer, query);
  return { accounts: items, nextCursor };
}

export async function listCampaigns({ ports, viewer, query }: Request<'listCampaigns'>): Promise<CampaignsView> {
  const { items, nextCursor } = await domain.listCampaigns(ports, viewer, query);
  return { campaigns: items, nextCursor };
}
