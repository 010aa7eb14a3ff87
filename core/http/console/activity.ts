import type { z } from 'zod';
import {
  type ActivityFacetsView,
  type ActivityView,
  activityExportQuerySchema,
  activityQuerySchema,
  operatorActor,
  recordExportSchema,
} from '#contract/console.ts';
import * as domain from '../../domain/audit/activity.ts';
import { instantRange } from '../../domain/calls/days.ts';
import type { ActivityFilter } from '../../domain/model.ts';
import type { Ports } from '../../domain/ports.ts';
import { readQuery } from '../middleware/body.ts';
import type { Context, HttpDeps } from '../middleware/context.ts';
import { actorOf, readBodyInSession, viewerOf } from '../middleware/session.ts';
import { eventView } from '../views.ts';
import { sendCsv } from './csv.ts';

export async function list(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const viewer = viewerOf(ctx);
  const { cursor = null, ...query } = readQuery(ctx, activityQuerySchema);
  const { items, ...page } = await domain.listActivity(ports, viewer, filterOf(ports, query), cursor);
  const view: ActivityView = { events: items.map((event) => eventView(event, viewer)), ...page };
  ctx.body = view;
}

export async function listFacets(ctx: Context, { ports }: HttpDeps): Promise<void> {
  const { actors, actions } = await domain.activityFacets(ports, viewerOf(ctx));
  const view: ActivityFacetsView = { actors: actors.map((actor) => actor ?? { id: operatorActor, name: 'The operator' }), actions };
  ctx.body = view;
}

export async function exportCsv(ctx: Context, deps: HttpDeps): Promise<void> {
  const { ports } = deps;
  const query = readQuery(ctx, activityExportQuerySchema);
  const filter = filterOf(ports, query);
  await sendCsv(ctx, deps, {
    list: 'activity',
    days: query,
    head: ['When', 'Who', 'Action', 'Kind', 'What', 'From'],
    async read(viewer, cursor) {
      const { items, nextCursor } = await domain.exportActivity(ports, viewer, filter, cursor);
      const rows = items.map((event) => {
        const { at, actor, action, subject, address } = eventView(event, viewer);
        return [at, actor?.name ?? 'The operator', action, subject.kind, subject.name, address];
      });
      return { rows, nextCursor };
    },
  });
}

function filterOf({ randomness }: Ports, query: z.output<typeof activityExportQuerySchema>): ActivityFilter {
  const { actor, action = null, subject = null } = query;
  return {
    at: instantRange(randomness, query),
    actor: actor === undefined ? null : { id: actor === operatorActor ? null : actor },
    ...{ action, subject },
  };
}

export async function recordExport(ctx: Context, deps: HttpDeps): Promise<void> {
  const input = await readBodyInSession(ctx, deps, recordExportSchema);
  await domain.recordExport(deps.ports, viewerOf(ctx), actorOf(deps, ctx), input);
  ctx.status = 204;
}
