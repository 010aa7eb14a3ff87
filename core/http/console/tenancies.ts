import { type AccountsView, type CampaignsView, type TenanciesView, tenanciesQuerySchema } from '#contract/console.ts';
import { listAccounts, listCampaigns, searchTenancies } from '../../domain/tenancies.ts';
import { readQuery } from '../body.ts';
import { type Context, type HttpDeps, viewerOf } from '../context.ts';

export async function search(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { search: text } = readQuery(ctx, tenanciesQuerySchema);
  const found = await searchTenancies(ports, viewer, text);
  const view: TenanciesView = {
    tenancies: found.map(({ kind, id, name, partnerName }) => ({ kind, id, name, ...(partnerName === null ? {} : { partnerName }) })),
  };
  ctx.body = view;
}

export async function accounts(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const view: AccountsView = { accounts: await listAccounts(ports, viewerOf(ctx)) };
  ctx.body = view;
}

export async function campaigns(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const view: CampaignsView = { campaigns: await listCampaigns(ports, viewerOf(ctx)) };
  ctx.body = view;
}
