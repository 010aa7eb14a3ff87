import { type ActivityView, activityQuerySchema, recordExportSchema } from '#contract/console.ts';
import * as domain from '../../domain/activity.ts';
import { readQuery } from '../body.ts';
import type { Context, HttpDeps } from '../context.ts';
import { actorOf, readBodyInSession, viewerOf } from '../session.ts';
import { eventView } from '../views.ts';

export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { cursor = null } = readQuery(ctx, activityQuerySchema);
  const { items, nextCursor } = await domain.listActivity(ports, viewer, cursor);
  const view: ActivityView = { events: items.map((event) => eventView(event, viewer)), nextCursor };
  ctx.body = view;
}

export async function recordExport(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBodyInSession(ctx, deps, recordExportSchema);
  await domain.recordExport(deps.ports, viewerOf(ctx), actorOf(deps, ctx), input);
  ctx.status = 204;
}
