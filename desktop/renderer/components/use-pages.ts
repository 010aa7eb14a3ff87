import { loadAsMany, type Paged, type Pages } from '../state/loading/pages.ts';
import type { Resource } from '../state/loading/resource.ts';
import { useDebounced } from './forms/use-debounced.ts';
import { useFreshResource, useResource } from './loadable.tsx';

/** A search on the server starts when the user hasn't typed for this long. */
export const typingMs = 250;

type Searched<View extends Paged> = {
  resource: Resource<View>;
  pages: Pages<View>;
  /** Whether the whole list is loaded. If so, the screen searches it immediately; otherwise, the core has searched it. */
  isWhole: boolean;
};

/**
 * Loads a list. If the whole list is loaded, the screen searches it; otherwise, the core does.
 *
 * @param getPages loads the list for a search
 */
export function usePages<View extends Paged>(
  name: string,
  getPages: (search: string) => Pages<View>,
  search: string,
  everyMs?: number,
): Searched<View> {
  const all = useFreshResource<View>(name, (before) => loadAsMany(getPages(''), before), everyMs);
  const view = all.state.value.value;
  const isWhole = view === null || view.nextCursor === null;
  const settled = useDebounced(search, typingMs);
  const key = isWhole || search === '' ? '' : settled;
  const matching = useResource<View>(
    (before) =>
      key === '' ? Promise.resolve({ ok: true, value: all.state.peek().value ?? getPages('').empty }) : loadAsMany(getPages(key), before),
    `${name} ${key}`,
  );
  return key === '' ? { resource: all, pages: getPages(''), isWhole } : { resource: matching, pages: getPages(key), isWhole };
}
