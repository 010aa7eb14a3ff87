import type { RecordExport } from '#contract/console/activity.ts';
import { limits } from '#contract/limits.ts';
import { capTotal } from '../calls/call-list.ts';
import { scopeFor } from '../directory/scope.ts';
import type { ActivityFilter, ListedEvent, SignedInCaller, Viewer } from '../model.ts';
import { idCursors, type Page, readPage } from '../paging.ts';
import type { Ports } from '../ports.ts';
import { countRecorded } from '../sign-in/throttle.ts';
import { auditEvent } from './audit.ts';

/** Records the console's report that it saved a list as a file. */
export async function recordExport(ports: Ports, caller: SignedInCaller, { list, rows }: RecordExport): Promise<void> {
  await countRecorded(ports, 'export', caller.viewer.id);
  await recordListExport(ports, caller, list, `${list} (${rows} rows)`);
}

/**
 * Records that the core is about to send a list as a file. This is recorded before the export, because even an incomplete export reveals
 * data.
 */
export async function recordListExport(ports: Ports, { viewer, actor }: SignedInCaller, list: string, name: string): Promise<void> {
  const subject = { kind: 'list', id: list, name } as const;
  await ports.stores.activity.record(auditEvent(ports, actor, 'list.exported', subject, scopeFor(viewer).owningScope));
}

type ActivityPage = Page<ListedEvent> & { total: number; totalIsMore: boolean };

export async function listActivity(ports: Ports, viewer: Viewer, filter: ActivityFilter, cursor: string | null): Promise<ActivityPage> {
  const page = await findEvents(ports, viewer, filter, cursor);
  if (cursor === null && page.nextCursor === null) return { ...page, ...capTotal(page.items.length) };
  return { ...page, ...capTotal(await ports.stores.activity.count(scopeFor(viewer).activity, filter, limits.countedMatches + 1)) };
}

export function findEvents(
  { stores: { activity } }: Ports,
  viewer: Viewer,
  filter: ActivityFilter,
  cursor: string | null,
  size: number = limits.page,
): Promise<Page<ListedEvent>> {
  return readPage(
    eventCursors,
    { cursor, size },
    (after, rows) => activity.list(scopeFor(viewer).activity, filter, after, rows),
    ({ id }) => id,
  );
}

const eventCursors = idCursors('events');

/** Returns the users and actions that occur in the viewer's activity. */
export function activityFacets(ports: Ports, viewer: Viewer) {
  return ports.stores.activity.facets(scopeFor(viewer).activity);
}
