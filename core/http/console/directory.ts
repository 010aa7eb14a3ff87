import type {
  AccountInDirectoryView,
  CampaignInDirectoryView,
  CreatedSetupView,
  DirectoryAccountsView,
  DirectoryCampaignsView,
  DirectoryPartnersView,
  PartnerInDirectoryView,
} from '#contract/console.ts';
import * as domain from '../../domain/directory/directory.ts';
import { sessionOf } from '../middleware/session.ts';
import type { Request } from './request.ts';

export async function setUp({ ctx, ports, viewer, actor, body }: Request<'setUp'>): Promise<CreatedSetupView> {
  return domain.setUp(ports, sessionOf(ctx).id, viewer, actor, body);
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

export async function createPartner({ ports, viewer, actor, body }: Request<'createPartner'>): Promise<PartnerInDirectoryView> {
  return { partner: await domain.addPartner(ports, viewer, actor, body.name) };
}

export async function createAccount({ ports, viewer, actor, body }: Request<'createAccount'>): Promise<AccountInDirectoryView> {
  return { account: await domain.addAccount(ports, viewer, actor, body.name, body.partnerId) };
}

export async function createCampaign({ ports, viewer, actor, body }: Request<'createCampaign'>): Promise<CampaignInDirectoryView> {
  return { campaign: await domain.addCampaign(ports, viewer, actor, body.name, body.accountId) };
}

export async function renamePartner({ ports, viewer, actor, params, body }: Request<'renamePartner'>): Promise<PartnerInDirectoryView> {
  return { partner: await domain.renamePartner(ports, viewer, actor, params.id, body.name) };
}

export async function renameAccount({ ports, viewer, actor, params, body }: Request<'renameAccount'>): Promise<AccountInDirectoryView> {
  return { account: await domain.renameAccount(ports, viewer, actor, params.id, body.name) };
}

export async function renameCampaign({ ports, viewer, actor, params, body }: Request<'renameCampaign'>): Promise<CampaignInDirectoryView> {
  return { campaign: await domain.renameCampaign(ports, viewer, actor, params.id, body.name) };
}
