import type {
  AccountInDirectoryView,
  AccountsView,
  CampaignInDirectoryView,
  CampaignsView,
  CreatedSetupView,
  DirectoryAccountsView,
  DirectoryCampaignsView,
  DirectoryPartnersView,
  PartnerInDirectoryView,
} from '#contract/console/directory.ts';
import type { TenanciesView } from '#contract/console/session.ts';
import * as domain from '../../domain/directory/directory.ts';
import { getSession } from '../middleware/session.ts';
import { tenancyView } from './people.ts';
import type { Request } from './request.ts';

export async function setUp({ ctx, ports, caller, body }: Request<'setUp'>): Promise<CreatedSetupView> {
  return domain.setUp(ports, getSession(ctx).id, caller, body);
}

export async function listDirectoryPartners({ ports, viewer, query }: Request<'listDirectoryPartners'>): Promise<DirectoryPartnersView> {
  const { items, nextCursor } = await domain.listManagedPartners(ports, viewer, query);
  return { partners: items, nextCursor };
}

export async function listDirectoryAccounts({ ports, viewer, query }: Request<'listDirectoryAccounts'>): Promise<DirectoryAccountsView> {
  const { items, nextCursor } = await domain.listManagedAccounts(ports, viewer, query.partner ?? null, query);
  return { accounts: items, nextCursor };
}

export async function listDirectoryCampaigns({ ports, viewer, query }: Request<'listDirectoryCampaigns'>): Promise<DirectoryCampaignsView> {
  const { items, nextCursor } = await domain.listManagedCampaigns(ports, viewer, query.account ?? null, query);
  return { campaigns: items, nextCursor };
}

export async function createPartner({ ports, caller, body }: Request<'createPartner'>): Promise<PartnerInDirectoryView> {
  return { partner: await domain.createPartner(ports, caller, body.name) };
}

export async function createAccount({ ports, caller, body }: Request<'createAccount'>): Promise<AccountInDirectoryView> {
  return { account: await domain.createAccount(ports, caller, body.name, body.partnerId) };
}

export async function createCampaign({ ports, caller, body }: Request<'createCampaign'>): Promise<CampaignInDirectoryView> {
  return { campaign: await domain.createCampaign(ports, caller, body.name, body.accountId) };
}

export async function renamePartner({ ports, caller, params, body }: Request<'renamePartner'>): Promise<PartnerInDirectoryView> {
  return { partner: await domain.renameManaged(ports, caller, 'partner', params.id, body.name) };
}

export async function renameAccount({ ports, caller, params, body }: Request<'renameAccount'>): Promise<AccountInDirectoryView> {
  return { account: await domain.renameManaged(ports, caller, 'account', params.id, body.name) };
}

export async function renameCampaign({ ports, caller, params, body }: Request<'renameCampaign'>): Promise<CampaignInDirectoryView> {
  return { campaign: await domain.renameManaged(ports, caller, 'campaign', params.id, body.name) };
}

export async function deletePartner({ ports, caller, params }: Request<'deletePartner'>): Promise<void> {
  await domain.deleteManaged(ports, caller, 'partner', params.id);
}

export async function deleteAccount({ ports, caller, params }: Request<'deleteAccount'>): Promise<void> {
  await domain.deleteManaged(ports, caller, 'account', params.id);
}

export async function deleteCampaign({ ports, caller, params }: Request<'deleteCampaign'>): Promise<void> {
  await domain.deleteManaged(ports, caller, 'campaign', params.id);
}

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
