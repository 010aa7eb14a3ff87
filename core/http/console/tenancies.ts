import { type AccountsView, type CampaignsView, type TenanciesView, tenanciesQuerySchema } from '#contract/console.ts';
import * as domain from '../../domain/directory/tenancies.ts';
import { readListFilter, readQuery } from '../middleware/body.ts';
import type { Context, HttpDeps } from '../middleware/context.ts';
import { viewerOf } from '../middleware/session.ts';

export async function search(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { search: text } = readQuery(ctx, tenanciesQuerySchema);
  const found = await domain.searchTenancies(ports, viewer, text);
  const view: TenanciesView = {
    tenancies: found.map(({ kind, id, name, partnerName }) => ({ kind, id, name, ...(partnerName === null ? {} : { partnerName }) })),
  };
  ctx.body = view;
}

export async function listAccounts(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { items, nextCursor } = await domain.listAccounts(ports, viewerOf(ctx), readListFilter(ctx));
  const view: AccountsView = { accounts: items, nextCursor };
  ctx.body = view;
}

export async function listCampaigns(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { items, nextCursor } = await domain.listCampaigns(ports, viewerOf(ctx), readListFilter(ctx));
  const view: CampaignsView = { campaigns: items, nextCursor };
  ctx.body = view;
}
