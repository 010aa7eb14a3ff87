import { signal } from '@preact/signals';
import type { DateTime } from 'luxon';
import type { ApiKeyView } from '#contract/console.ts';
import { limits } from '#contract/limits.ts';
import { type Sort, sorted } from '../../state/format/sorting.ts';
import { remember } from '../../state/view.ts';
import { filterKeys, type KeyColumn, type KeyFilter, keySortValues } from './key-list.ts';

/** The user's settings on the keys screen. */
export type KeyListView = { search: string; filter: KeyFilter; owner: string; sort: Sort<KeyColumn>; size: number; page: number };

export const initialKeyListView: KeyListView = {
  search: '',
  filter: 'all',
  owner: '',
  sort: { column: 'created', isDescending: true },
  size: limits.pageSizes[1],
  page: 0,
};

/** The matching keys in the order that the user chose. */
export function keysInView(keys: readonly ApiKeyView[], { search, filter, owner, sort }: KeyListView, now: DateTime): ApiKeyView[] {
  const matches = filterKeys(keys, search, filter, now, owner);
  // In the core's order, which is stable even for keys with the same time.
  if (sort.column === 'created') return sort.isDescending ? matches : matches.toReversed();
  return sorted(matches, keySortValues[sort.column], sort.isDescending);
}

/** Filters the keys screen by owner. @param tenancyKey identifies the screen */
export function showKeysByOwner(tenancyKey: string, owner: string): void {
  remember(`${tenancyKey}/view/api-keys`, () => signal(initialKeyListView)).value = { ...initialKeyListView, owner };
}
