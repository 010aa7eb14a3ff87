import {
  type AccountInDirectoryView,
  type CampaignInDirectoryView,
  createAccountSchema,
  createCampaignSchema,
  type DirectoryAccountsView,
  type DirectoryCampaignsView,
  type DirectoryPartnersView,
  directoryAccountsQuerySchema,
  directoryCampaignsQuerySchema,
  nameInDirectorySchema,
  type PartnerInDirectoryView,
  setupSchema,
} from '#contract/console.ts';
import * as domain from '../../domain/directory/directory.ts';
import { readListFilter, readQuery } from '../middleware/body.ts';
import { type Context, type HttpDeps, idOf } from '../middleware/context.ts';
import { actorOf, readBodyInSession, sessionOf, viewerOf } from '../middleware/session.ts';

export async function setUp(ctx: Context, deps: HttpDeps): Promise<void> {
  const names = await readBodyInSession(ctx, deps, setupSchema);
  ctx.body = await domain.setUp(deps.ports, sessionOf(ctx).id, viewerOf(ctx), actorOf(deps, ctx), names);
  ctx.status = 201;
}

export async function listPartners(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { items, nextCursor } = await domain.listManagedPartners(ports, viewerOf(ctx), readListFilter(ctx));
  const view: DirectoryPartnersView = { partners: items, nextCursor };
  ctx.body = view;
}

export async function listAccounts(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { partner = null, cursor = null, search } = readQuery(ctx, directoryAccountsQuerySchema);
  const { items, nextCursor } = await domain.listManagedAccounts(ports, viewerOf(ctx), partner, { search, cursor });
  const view: DirectoryAccountsView = { accounts: items, nextCursor };
  ctx.body = view;
}

export async function listCampaigns(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { account = null, cursor = null, search } = readQuery(ctx, directoryCampaignsQuerySchema);
  const { items, nextCursor } = await domain.listManagedCampaigns(ports, viewerOf(ctx), account, { search, cursor });
  const view: DirectoryCampaignsView = { campaigns: items, nextCursor };
  ctx.body = view;
}

export async function createPartner(ctx: Context, deps: HttpDeps): Promise<void> {
  const { name } = await readBodyInSession(ctx, deps, nameInDirectorySchema);
  const view: PartnerInDirectoryView = { partner: await domain.addPartner(deps.ports, viewerOf(ctx), actorOf(deps, ctx), name) };
  ctx.body = view;
  ctx.status = 201;
}

export async function createAccount(ctx: Context, deps: HttpDeps): Promise<void> {
  const { name, partnerId } = await readBodyInSession(ctx, deps, createAccountSchema);
  const account = await domain.addAccount(deps.ports, viewerOf(ctx), actorOf(deps, ctx), name, partnerId);
  const view: AccountInDirectoryView = { account };
  ctx.body = view;
  ctx.status = 201;
}

export async function createCampaign(ctx: Context, deps: HttpDeps): Promise<void> {
  const { name, accountId } = await readBodyInSession(ctx, deps, createCampaignSchema);
  const campaign = await domain.addCampaign(deps.ports, viewerOf(ctx), actorOf(deps, ctx), name, accountId);
  const view: CampaignInDirectoryView = { campaign };
  ctx.body = view;
  ctx.status = 201;
}

export async function renamePartner(ctx: Context, deps: HttpDeps): Promise<void> {
  const { name } = await readBodyInSession(ctx, deps, nameInDirectorySchema);
  const partner = await domain.renamePartner(deps.ports, viewerOf(ctx), actorOf(deps, ctx), idOf(ctx), name);
  const view: PartnerInDirectoryView = { partner };
  ctx.body = view;
}

export async function renameAccount(ctx: Context, deps: HttpDeps): Promise<void> {
  const { name } = await readBodyInSession(ctx, deps, nameInDirectorySchema);
  const account = await domain.renameAccount(deps.ports, viewerOf(ctx), actorOf(deps, ctx), idOf(ctx), name);
  const view: AccountInDirectoryView = { account };
  ctx.body = view;
}

export async function renameCampaign(ctx: Context, deps: HttpDeps): Promise<void> {
  const { name } = await readBodyInSession(ctx, deps, nameInDirectorySchema);
  const campaign = await domain.renameCampaign(deps.ports, viewerOf(ctx), actorOf(deps, ctx), idOf(ctx), name);
  const view: CampaignInDirectoryView = { campaign };
  ctx.body = view;
}
