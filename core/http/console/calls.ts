import { type ActivityView, activityQuerySchema, type CallsView, callsQuerySchema } from '#contract/console.ts';
import { listActivity } from '../../domain/activity.ts';
import { listCalls } from '../../domain/call-list.ts';
import { readQuery } from '../body.ts';
import { type Context, type HttpDeps, idOf, viewerOf } from '../context.ts';
import { callView, eventView } from '../views.ts';

export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { state = null, search, cursor = null } = readQuery(ctx, callsQuerySchema);
  const { items, nextCursor } = await listCalls(ports, viewer, idOf(ctx), { state, search, cursor });
  const view: CallsView = { calls: items.map((call) => callView(call, viewer)), nextCursor };
  ctx.body = view;
}

export async function activity(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { cursor = null } = readQuery(ctx, activityQuerySchema);
  const { items, nextCursor } = await listActivity(ports, viewerOf(ctx), cursor);
  const view: ActivityView = { events: items.map(eventView), nextCursor };
  ctx.body = view;
}
