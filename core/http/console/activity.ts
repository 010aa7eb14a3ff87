import { auditActions, type EventView, missingActorName, operatorActor, staffAddress } from '#contract/console/activity.ts';
import { limits } from '#contract/limits.ts';
import { timestamp } from '#contract/text/text.ts';
import * as domain from '../../domain/audit/activity.ts';
import { instantRange } from '../../domain/calls/days.ts';
import type { Viewer } from '../../domain/model.ts';
import type { ActivityFilter, ListedEvent, Ports } from '../../domain/ports.ts';
import type { Handler, Request } from '../middleware/context.ts';
import { sendCsv, zonedTimestamp } from './csv.ts';
import { isFullyShown, personView } from './people.ts';

export const listActivity: Handler<'listActivity'> = async ({ ports, viewer, query }) => {
  const { items, ...page } = await domain.listActivity(ports, viewer, toFilter(ports, query), query.cursor, query.search);
  return { events: items.map((event) => eventView(event, viewer)), ...page };
};

export const listActivityFacets: Handler<'listActivityFacets'> = async ({ ports, viewer }) => {
  const { actors, actions } = await domain.activityFacets(ports, viewer);
  return {
    actors: actors.map((actor) => (actor ? personView(actor, viewer) : { id: operatorActor, name: 'The operator' })),
    // A newer core may have recorded other actions, but lists can't be filtered by those.
    actions: auditActions.filter((action) => actions.includes(action)),
  };
};

export const exportActivity: Handler<'exportActivity'> = async ({ ctx, deps, takeTurn, ports, query }) => {
  const filter = toFilter(ports, query);
  await sendCsv(ctx, deps, {
    list: 'activity',
    takeTurn,
    days: query,
    head: ['When', 'Who', 'Action', 'Kind', 'What', 'From', 'Email', 'Detail'],
    async read(viewer, cursor) {
      const { items, nextCursor } = await domain.findEvents(ports, viewer, filter, cursor, limits.exportPage, query.search);
      const rows = items.map((event) => {
        const { actor, action, subject, address, detail } = eventView(event, viewer);
        return [
          zonedTimestamp(event.at, query.timeZone),
          actor?.name ?? missingActorName(action),
          action,
          subject.kind,
          subject.name,
          address,
          actor?.email ?? '',
          detail ?? '',
        ];
      });
      return { rows, nextCursor };
    },
  });
};

function toFilter({ randomness }: Ports, query: Request<'exportActivity'>['query']): ActivityFilter {
  const { actor, action = null, subject = null } = query;
  return {
    at: instantRange(randomness, query),
    actor: actor === undefined ? null : { id: actor === operatorActor ? null : actor },
    ...{ action, subject },
  };
}

export const recordExport: Handler<'recordExport'> = ({ ports, caller, body }) => domain.recordExport(ports, caller, body);

/** Only staff can see the names of the operating system's users, and from where other staff act. */
export function eventView({ id, at, actor, action, subject, address, detail }: ListedEvent, viewer: Viewer): EventView {
  const shownAddress = actor && !isFullyShown(actor, viewer) ? staffAddress : address;
  return {
    ...{ id, at: timestamp(at), actor: actor && personView(actor, viewer), action, subject },
    address: viewer.userType === 'staff' ? shownAddress : shownAddress.replace(/^local:.*/, 'local'),
    ...(detail === undefined ? {} : { detail }),
  };
}
