import * as domain from '../../domain/directory/directory.ts';
import type { DirectoryKind } from '../../domain/ports.ts';
import type { Handler, Request } from '../middleware/context.ts';
import { getSession } from '../middleware/session.ts';
import { tenancyView } from './people.ts';

export const setUp: Handler<'setUp'> = async ({ ctx, ports, caller, body }) => domain.setUp(ports, getSession(ctx).id, caller, body);

export const listDirectoryPartners: Handler<'listDirectoryPartners'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listManaged(ports, viewer, 'partner', null, query);
  return { partners: items, nextCursor };
};

export const listDirectoryAccounts: Handler<'listDirectoryAccounts'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listManaged(ports, viewer, 'account', query.partner ?? null, query);
  return { accounts: items, nextCursor };
};

export const listDirectoryCampaigns: Handler<'listDirectoryCampaigns'> = async ({ ports, viewer, query }) => {
  const { items, nextCursor } = await domain.listManaged(ports, viewer, 'campaign', query.account ?? null, query);
  return { campaigns: items, nextCursor };
};

export const createPartner: Handler<'createPartner'> = async ({ ports, caller, body }) => ({
  partner: await domain.createPartner(ports, caller, body.name),
});

export const createAccount: Handler<'createAccount'> = async ({ ports, caller, body }) => ({
  account: await domain.createAccount(ports, caller, body.name, body.partnerId),
});

export const createCampaign: Handler<'createCampaign'> = async ({ ports, caller, body }) => ({
  campaign: await domain.createCampaign(ports, caller, body.name, body.accountId),
});

export const renamePartner: Handler<'renamePartner'> = async ({ ports, caller, params, body }) => ({
  partner: await domain.changeManaged(ports, caller, 'partner', params.id, body),
});

export const renameAccount: Handler<'renameAccount'> = async ({ ports, caller, params, body }) => ({
  account: await domain.changeManaged(ports, caller, 'account', params.id, body),
});

export const changeCampaign: Handler<'changeCampaign'> = async ({ ports, caller, params, body }) => ({
  campaign: await domain.changeManaged(ports, caller, 'campaign', params.id, body),
});

function deletion(kind: DirectoryKind) {
  return async ({ ports, caller, params }: Pick<Request<'deletePartner'>, 'ports' | 'caller' | 'params'>): Promise<void> => {
    await domain.deleteManaged(ports, caller, kind, params.id);
  };
}
export const deletePartner: Handler<'deletePartner'> = deletion('partner');
export const deleteAccount: Handler<'deleteAccount'> = deletion('account');
export const deleteCampaign: Handler<'deleteCampaign'> = deletion('campaign');

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
