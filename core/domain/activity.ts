import type { ListedEvent, Viewer } from './model.ts';
import { type Page, pageOf, rowsForPage } from './paging.ts';
import type { Ports } from './ports.ts';
import { scopeOf } from './scope.ts';

export async function listActivity(ports: Ports, viewer: Viewer, cursor: string | null): Promise<Page<ListedEvent>> {
  return pageOf(await ports.stores.activity.list(scopeOf(viewer).activity, cursor, rowsForPage), ({ id }) => id);
}
