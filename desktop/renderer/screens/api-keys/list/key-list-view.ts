import type { DateTime } from 'luxon';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import { limits } from '#contract/limits.ts';
import { oneOf, oneOfNumbers, pageNumber, sortBy, text, viewFields } from '../../../state/address/fields.ts';
import { type Sort, sorted } from '../../../state/format/sorting.ts';
import { readPreference } from '../../../state/preferences.ts';
import { filterKeys, type KeyColumn, type KeyFilter, keyFilters, keySortValues } from './key-list.ts';

/** The user's settings on the keys screen. @property open the ID of the key whose details are shown */
export type KeyListView = {
  search: string;
  filter: KeyFilter;
  owner: string;
  sort: Sort<KeyColumn>;
  size: number;
  page: number;
  open: string;
};

export const keyListView = viewFields<KeyListView>('api-keys', ['open'], {
  open: text(),
  search: text(),
  filter: oneOf(keyFilters, 'all'),
  owner: text(),
  sort: sortBy(['name', 'owner', 'created', 'used', 'expiry'], { column: 'created', isDescending: true }),
  size: oneOfNumbers(limits.pageSizes, limits.pageSizes.find((size) => String(size) === readPreference('rows')) ?? limits.pageSizes[1]),
  page: pageNumber(),
});

/** Returns the matching keys in the order that the user chose. */
export function keysInView(keys: readonly ApiKeyView[], { search, filter, owner, sort }: KeyListView, now: DateTime): ApiKeyView[] {
  const matches = filterKeys(keys, search, filter, now, owner);
  // Uses the core's order, which is stable even for keys with the same time.
  if (sort.column === 'created') return sort.isDescending ? matches : matches.toReversed();
  return sorted(matches, keySortValues[sort.column], sort.isDescending);
}
