import type { RecordExport } from '#contract/console/activity.ts';
import { limits } from '#contract/limits.ts';
import { foldText } from '#contract/text/text.ts';
import { scopeFor } from '../directory/scope.ts';
import type { SignedInCaller, Viewer } from '../model.ts';
import { idCursors, type Page, readPage, type Total, toId, withTotal } from '../paging.ts';
import type { ActivityFilter, ListedEvent, Ports } from '../ports.ts';
import { countRecorded } from '../sign-in/throttle.ts';
import { auditEvent } from './audit.ts';

export async function recordExport(ports: Ports, caller: SignedInCaller, { list, rows }: RecordExport): Promise<void> {
  await countRecorded(ports, 'export', caller.viewer.id);
  await recordListExport(ports, caller, list, `${list} (${rows} rows)`);
}

/** Call this before the export, because even an incomplete one reveals data. */
export async function recordListExport(ports: Ports, { viewer, actor }: SignedInCaller, list: string, name: string): Promise<void> {
  const subject = { kind: 'list', id: list, name } as const;
  await ports.stores.activity.record(auditEvent(ports, actor, 'list.exported', subject, scopeFor(viewer).owningScope));
}

export async function listActivity(
  ports: Ports,
  viewer: Viewer,
  filter: ActivityFilter,
  cursor: string | null,
  search = '',
): Promise<Page<ListedEvent> & Total> {
  const page = await findEvents(ports, viewer, filter, cursor, limits.page, search);
  // Counting all matches of a search would read all events.
  if (search !== '') return { ...page, total: page.items.length, totalIsMore: page.nextCursor !== null };
  return withTotal(page, cursor, (max) => ports.stores.activity.count(scopeFor(viewer).activity, filter, max));
}

/** How many events one request searches. The next page continues where it has stopped. */
const searched = { events: 20_000, atOnce: 1_000 };

/** @param search a part of a name, a detail or an address, or a whole ID; empty for all events */
export async function findEvents(
  ports: Ports,
  viewer: Viewer,
  filter: ActivityFilter,
  cursor: string | null,
  size: number = limits.page,
  search = '',
): Promise<Page<ListedEvent>> {
  if (search === '') return readEvents(ports, viewer, filter, cursor, size);
  // An event's own ID is also a position: the list that begins just before it begins with the event.
  const [named] = cursor === null ? await ports.stores.activity.list(scopeFor(viewer).activity, filter, `${search}~`, 1) : [];
  if (named?.id === search) return { items: [named], nextCursor: null };
  const term = foldText(search);
  const isMatch = ({ subject, actor, detail = '', address }: ListedEvent) =>
    [subject.id, actor?.id].includes(search) ||
    [subject.name, actor?.name ?? '', detail, address].some((text) => foldText(text).includes(term));
  const items: ListedEvent[] = [];
  let position = cursor;
  for (let read = 0; read < searched.events; read += searched.atOnce) {
    const page = await readEvents(ports, viewer, filter, position, searched.atOnce);
    for (const event of page.items.filter(isMatch)) {
      items.push(event);
      if (items.length === size) return { items, nextCursor: eventCursors.write(event.id) };
    }
    position = page.nextCursor;
    if (position === null) break;
  }
  return { items, nextCursor: position };
}

function readEvents({ stores: { activity } }: Ports, viewer: Viewer, filter: ActivityFilter, cursor: string | null, size: number) {
  return readPage(eventCursors, { cursor, size }, (after, rows) => activity.list(scopeFor(viewer).activity, filter, after, rows), toId);
}

const eventCursors = idCursors('events');

export function activityFacets(ports: Ports, viewer: Viewer) {
  return ports.stores.activity.facets(scopeFor(viewer).activity);
}
