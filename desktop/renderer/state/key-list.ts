import { DateTime } from 'luxon';
import type { ApiKeyView } from '#contract/console.ts';
import { isExpired } from '#contract/expiry.ts';
import { folded } from '#contract/text.ts';

export const keyFilters = ['all', 'expiring', 'unused'] as const;
export type KeyFilter = (typeof keyFilters)[number];

export const keyFilterLabels: Readonly<Record<KeyFilter, string>> = {
  all: 'All keys',
  expiring: 'Expiring in 30 days',
  unused: 'Unused for 90 days',
};

/** The keys whose name contains the searched text and that match the filter, in their order. */
export function filterKeys(keys: readonly ApiKeyView[], search: string, filter: KeyFilter, now: DateTime): ApiKeyView[] {
  const wanted = folded(search.trim());
  return keys.filter((key) => folded(key.name).includes(wanted) && passes(key, filter, now));
}

function passes(key: ApiKeyView, filter: KeyFilter, now: DateTime): boolean {
  if (filter === 'expiring') {
    if (key.expiresAt === null || hasExpired(key, now)) return false;
    return DateTime.fromISO(key.expiresAt) <= now.plus({ days: 30 });
  }
  // A key that was never used counts from its creation.
  if (filter === 'unused') return DateTime.fromISO(key.lastUsedAt ?? key.createdAt) <= now.minus({ days: 90 });
  return true;
}

/** The core said so, or the key has expired since the list was loaded. */
export function hasExpired(key: ApiKeyView, now: DateTime): boolean {
  return key.expired || (key.expiresAt !== null && isExpired(Date.parse(key.expiresAt), now.toMillis()));
}

export type Page<Item> = { items: Item[]; index: number; count: number; first: number; last: number };

/** One page of a list, or the last page if the list has become shorter. Pages count from zero, rows from one. */
export function pageOf<Item>(all: readonly Item[], wanted: number, size: number): Page<Item> {
  const count = Math.max(1, Math.ceil(all.length / size));
  const index = Math.min(Math.max(0, wanted), count - 1);
  const items = all.slice(index * size, (index + 1) * size);
  return { items, index, count, first: items.length === 0 ? 0 : index * size + 1, last: index * size + items.length };
}
