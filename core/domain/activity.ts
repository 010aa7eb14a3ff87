import type { RecordExport } from '#contract/console.ts';
import { auditEvent } from './audit.ts';
import type { Actor, ListedEvent, Viewer } from './model.ts';
import { type Page, pageOf, rowsForPage } from './paging.ts';
import type { Ports } from './ports.ts';
import { scopeOf } from './scope.ts';
import { countExport } from './throttle.ts';

/** The console says that it has saved a list as a file. */
export async function recordExport(ports: Ports, viewer: Viewer, actor: Actor, { list, rows }: RecordExport): Promise<void> {
  await countExport(ports, viewer.id);
  const subject = { kind: 'list', id: list, name: `${list} (${rows} rows)` } as const;
  await ports.stores.activity.record(auditEvent(ports, actor, 'list.exported', subject, scopeOf(viewer).owningScope));
}

export async function listActivity(ports: Ports, viewer: Viewer, cursor: string | null): Promise<Page<ListedEvent>> {
  return pageOf(await ports.stores.activity.list(scopeOf(viewer).activity, cursor, rowsForPage), ({ id }) => id);
}
