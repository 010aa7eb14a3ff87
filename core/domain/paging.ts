import { limits } from '#contract/limits.ts';

/** A page of items. `nextCursor` is null on the last one. */
export type Page<Item> = { items: Item[]; nextCursor: string | null };

/** Ask storage for one row more than a page has: it tells whether there is a next page. */
export const rowsForPage = limits.page + 1;

export function pageOf<Item>(found: readonly Item[], cursorOf: (item: Item) => string): Page<Item> {
  const items = found.slice(0, limits.page);
  const last = items.at(-1);
  return { items, nextCursor: found.length > limits.page && last !== undefined ? cursorOf(last) : null };
}
