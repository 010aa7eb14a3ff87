import { instant, type Millis } from './instant.ts';
import { Problem } from './problem.ts';

/** A page of items. `nextCursor` is null on the last page. */
export type Page<Item> = { items: Item[]; nextCursor: string | null };

/** Reads a page. @param read reads this many rows: one more than a page has, to find out whether there's a next page */
export async function readPage<Item>(
  size: number,
  read: (rows: number) => Promise<readonly Item[]>,
  getCursor: (item: Item) => string,
): Promise<Page<Item>> {
  return toPage(size, await read(size + 1), getCursor);
}

export function toPage<Item>(size: number, rows: readonly Item[], getCursor: (item: Item) => string): Page<Item> {
  const items = rows.slice(0, size);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > size && last !== undefined ? getCursor(last) : null };
}

/** A position in a list that's ordered by time and ID. It stays valid if the item there is deleted. */
export type TimePosition = { at: Millis; id: string };

export function timeCursor({ createdAt, id }: { createdAt: Millis; id: string }): string {
  return `${createdAt.toString(36)}_${id}`;
}

/** Parses a cursor from {@link timeCursor}. @throws Problem `malformed-request` */
export function timePosition(cursor: string | null): TimePosition | null {
  if (cursor === null) return null;
  const [, at = '', id = ''] = /^([0-9a-z]{1,9})_(.+)$/.exec(cursor) ?? [];
  if (id === '') throw new Problem('malformed-request', 'Invalid query parameter cursor: pass the nextCursor from the previous page.');
  return { at: instant(Number.parseInt(at, 36)), id };
}
