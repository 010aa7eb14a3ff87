import { limits } from '#contract/limits.ts';
import type { AuditEvent } from './audit.ts';
import type { Ports } from './ports.ts';
import { type ActivityVisibility, scopeOf, type Viewer } from './tenancy.ts';

export type ListedEvent = Omit<AuditEvent, 'home' | 'action'> & { action: string };
/** A page, and where the next one begins; null at the end. */
export type Page<Item> = { items: Item[]; nextCursor: string | null };

export type ActivityStore = {
  /** The newest first, from after the cursor. */
  list(sight: ActivityVisibility, cursor: string | null, limit: number): Promise<ListedEvent[]>;
};

export async function listActivity(ports: Ports, viewer: Viewer, cursor: string | null): Promise<Page<ListedEvent>> {
  return pageOf(await ports.stores.activity.list(scopeOf(viewer).activity, cursor, limits.page + 1), ({ id }) => id);
}

/** One row more than a page was asked for: it tells whether there is a next one. */
export function pageOf<Item>(found: Item[], cursorOf: (item: Item) => string): Page<Item> {
  const items = found.slice(0, limits.page);
  const last = items.at(-1);
  return { items, nextCursor: found.length > limits.page && last !== undefined ? cursorOf(last) : null };
}
