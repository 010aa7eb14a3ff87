import { type ActivityView, activityQuerySchema } from '#contract/console.ts';
import { listActivity } from '../../domain/activity.ts';
import { readQuery } from '../body.ts';
import type { Context, HttpDeps } from '../context.ts';
import { viewerOf } from '../session.ts';
import { eventView } from '../views.ts';

export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { cursor = null } = readQuery(ctx, activityQuerySchema);
  const { items, nextCursor } = await listActivity(ports, viewer, cursor);
  const view: ActivityView = { events: items.map((event) => eventView(event, viewer)), nextCursor };
  ctx.body = view;
}
