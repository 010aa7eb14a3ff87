import * as domain from '../../domain/directory/directory.ts';
import type { ManagedCampaign } from '../../domain/model.ts';
import { getSession } from '../middleware/session.ts';
import { tenancyView } from './people.ts';
import type { Handler } from './request.ts';

export const setUp: Handler<'setUp'> = async ({ ctx, ports, caller, body }) => domain.setUp(ports, getSession(ctx).id, caller, body);

export const listDirectoryPartners: Handler<'listDirectoryPartners'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listManagedPartners(ports, viewer, query);
  return { partners: items, nextCursor };
};

export const listDirectoryAccounts: Handler<'listDirectoryAccounts'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listManagedAccounts(ports, viewer, query.partner ?? null, query);
  return { accounts: items, nextCursor };
};

export const listDirectoryCampaigns: Handler<'listDirectoryCampaigns'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listManagedCampaigns(ports, viewer, query.account ?? null, query);
  return { campaigns: items.map(campaignView), nextCursor };
};

function campaignView({ settings, ...campaign }: ManagedCampaign) {
  return { ...campaign, settings: { ...settings } };
}

export const createPartner: Handler<'createPartner'> = async ({ ports, caller, body }) => ({
  partner: await domain.createPartner(ports, caller, body.name),
});

export const createAccount: Handler<'createAccount'> = async ({ ports, caller, body }) => ({
  account: await domain.createAccount(ports, caller, body.name, body.partnerId),
});

export const createCampaign: Handler<'createCampaign'> = async ({ ports, caller, body }) => ({
  campaign: campaignView(await domain.createCampaign(ports, caller, body.name, body.accountId)),
});

export const renamePartner: Handler<'renamePartner'> = async ({ ports, caller, params, body }) => ({
  partner: await domain.renameManaged(ports, caller, 'partner', params.id, body.name),
});

export const renameAccount: Handler<'renameAccount'> = async ({ ports, caller, params, body }) => ({
  account: await domain.renameManaged(ports, caller, 'account', params.id, body.name),
});

export const changeCampaign: Handler<'changeCampaign'> = async ({ ports, caller, params, body }) => ({
  campaign: campaignView(await domain.changeCampaign(ports, caller, params.id, body)),
});

export const deletePartner: Handler<'deletePartner'> = async ({ ports, caller, params }) => {
  await domain.deleteManaged(ports, caller, 'partner', params.id);
};

export const deleteAccount: Handler<'deleteAccount'> = async ({ ports, caller, params }) => {
  await domain.deleteManaged(ports, caller, 'account', params.id);
};

export const deleteCampaign: Handler<'deleteCampaign'> = async ({ ports, caller, params }) => {
  await domain.deleteManaged(ports, caller, 'campaign', params.id);
};

export const searchTenancies: Handler<'searchTenancies'> = async ({ ports, viewer, query }) => {
  const tenancies = await domain.searchTenancies(ports, viewer, query.search);
  return { tenancies: tenancies.map(tenancyView) };
};

export const listAccounts: Handler<'listAccounts'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listAccounts(ports, viewer, query);
  return { accounts: items, nextCursor };
};

export const listCampaigns: Handler<'listCampaigns'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listCampaigns(ports, viewer, query);
  return { campaigns: items, nextCursor };
};
