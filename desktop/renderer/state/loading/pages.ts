import type { Result } from '../../../ipc.ts';
import { handleSessionFailure } from '../session.ts';
import type { Resource } from './resource.ts';

/** A list that the core returns in pages. */
export type Paged = { nextCursor: string | null };

/** How a list is loaded page by page. */
export type Pages<View extends Paged> = {
  load: (cursor: string | null) => Promise<Result<View>>;
  /** Joins two pages, with the second one's cursor. */
  join: (view: View, next: View) => View;
  count: (view: View) => number;
  empty: View;
};

/** Loads at least as many items as before, starting from the first one. */
export async function loadAsMany<View extends Paged>({ load, join, count }: Pages<View>, before: View | null): Promise<Result<View>> {
  let result = await load(null);
  while (result.ok && result.value.nextCursor !== null && before !== null && count(result.value) < count(before)) {
    const next = await load(result.value.nextCursor);
    result = next.ok ? { ok: true, value: join(result.value, next.value) } : next;
  }
  return result;
}

/**
 * Adds the next page. Does nothing while the resource still shows the items of another search, because their cursor doesn't continue this
 * one. @returns the failure if the page couldn't be loaded
 */
export async function loadNext<View extends Paged>({ load, join }: Pages<View>, resource: Resource<View>): Promise<Result<View> | null> {
  const { value, loadedAt } = resource.state.peek();
  const cursor = value?.nextCursor ?? null;
  if (cursor === null || loadedAt === 0) return null;
  const result = await handleSessionFailure(load(cursor));
  const view = resource.state.peek().value;
  // In the meantime, a refresh may have loaded other pages.
  if (result.ok && view?.nextCursor === cursor) resource.change(join(view, result.value));
  return result;
}
