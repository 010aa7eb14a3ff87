import { DateTime } from 'luxon';
import type { ApiKeyView } from '#contract/console/api-keys.ts';
import { expiresSoon, isExpired } from '#contract/expiry.ts';
import { foldText } from '#contract/text/text.ts';
import { ownZone } from '../../../state/clock.ts';
import { formatDay } from '../../../state/format/format-time.ts';
import type { SortValue } from '../../../state/format/sorting.ts';

export const keyFilters = ['all', 'expiring', 'expired', 'no-expiration', 'never-used', 'unused', 'owner-away'] as const;
export type KeyFilter = (typeof keyFilters)[number];

export const keyFilterLabels: Readonly<Record<KeyFilter, string>> = {
  all: 'All',
  expiring: 'Expiring soon',
  expired: 'Expired',
  'no-expiration': 'Never expires',
  'never-used': 'Never used',
  unused: 'Unused for 90 days',
  'owner-away': 'Owner inactive for 90 days',
};

/** Returns what identifies the owner in a filter; empty if the viewer can't see owners. */
export function getOwnerId({ owner }: ApiKeyView): string {
  if (!owner) return '';
  return owner.isYou ? viewerAsOwner : (owner.email ?? owner.name);
}

/** Stands for the viewer, whatever their name is. */
export const viewerAsOwner = 'You';

/** Lists the owners of the keys by ID, the viewer first. Owners with the same name are distinguished by their email address. */
export function listOwners(keys: readonly ApiKeyView[]): ReadonlyMap<string, string> {
  const names = new Map(keys.filter(({ owner }) => owner).map((key) => [getOwnerId(key), ownerName(key)]));
  const isShared = (name: string) => [...names.values()].filter((each) => each === name).length > 1;
  const labels = [...names].map(([id, name]): [string, string] => [id, isShared(name) && id !== viewerAsOwner ? `${name} (${id})` : name]);
  const isViewer = (id: string) => Number(id === viewerAsOwner);
  return new Map(labels.toSorted(([a, nameA], [b, nameB]) => isViewer(b) - isViewer(a) || nameA.localeCompare(nameB)));
}

function ownerName({ owner }: ApiKeyView): string {
  if (!owner) return '';
  return owner.isYou ? viewerAsOwner : owner.name;
}

/** Returns the keys whose names contain the search text and that match the filter, in the same order. */
export function filterKeys(keys: readonly ApiKeyView[], search: string, filter: KeyFilter, now: DateTime, owner = ''): ApiKeyView[] {
  const query = foldText(search.trim());
  const matches = filters[filter](now);
  return keys.filter(
    (key) => (query === '' || foldName(key).includes(query)) && (owner === '' || getOwnerId(key) === owner) && matches(key),
  );
}

/** Caches the folded names of keys, because folding 500 names takes longer than the rest of a search. */
const foldedNames = new WeakMap<ApiKeyView, string>();

function foldName(key: ApiKeyView): string {
  const known = foldedNames.get(key);
  if (known !== undefined) return known;
  const folded = foldText(key.name);
  foldedNames.set(key, folded);
  return folded;
}

/** The filters compare milliseconds, because 500 luxon dates would slow down every keystroke in the search. */
const filters: Readonly<Record<KeyFilter, (now: DateTime) => (key: ApiKeyView) => boolean>> = {
  all: () => () => true,
  expiring: (now) => (key) => isExpiringSoon(key, now),
  expired: (now) => (key) => hasExpired(key, now),
  'no-expiration': () => (key) => key.expiresAt === null,
  'never-used': () => (key) => key.lastUsedAt === null,
  unused: (now) => {
    const since = now.minus({ days: 90 }).toMillis();
    // For a key that was never used, the time since its creation counts.
    return (key) => Date.parse(key.lastUsedAt ?? key.createdAt) <= since;
  },
  'owner-away': () => (key) => key.ownerAway === true,
};

/** Whether the key expires within 30 days. */
export function isExpiringSoon(key: ApiKeyView, now: DateTime): boolean {
  return key.expiresAt !== null && !hasExpired(key, now) && expiresSoon(Date.parse(key.expiresAt), now.toMillis());
}

/** Whether a key has expired, according to the core or since the list was loaded. */
export function hasExpired(key: ApiKeyView, now: DateTime): boolean {
  return key.expired || (key.expiresAt !== null && isExpired(Date.parse(key.expiresAt), now.toMillis()));
}

/** Returns the keys that expire within 30 days, soonest first. */
export function keysExpiringSoon(keys: readonly ApiKeyView[], now: DateTime): ApiKeyView[] {
  return keys.filter((key) => isExpiringSoon(key, now)).toSorted((a, b) => Date.parse(a.expiresAt ?? '') - Date.parse(b.expiresAt ?? ''));
}

/** Whether the list already has a key with this name, ignoring case, accents and width. */
export function isNameTaken(keys: readonly ApiKeyView[], name: string): boolean {
  const foldedName = foldText(name.trim());
  return foldedName !== '' && keys.some((key) => foldText(key.name.trim()) === foldedName);
}

/** Returns the other keys with the same name. */
export function keysWithSameName(keys: readonly ApiKeyView[], { id, name }: ApiKeyView): ApiKeyView[] {
  return keys.filter((key) => key.id !== id && key.name === name);
}

type NamedKey = Pick<ApiKeyView, 'id' | 'name' | 'owner'> & Partial<Pick<ApiKeyView, 'createdAt'>>;

/** Returns the keys' labels by ID. Keys that share a name are distinguished by their owner and the day of their creation. */
export function labelKeys(keys: readonly NamedKey[]): Map<string, string> {
  const byId = new Map(keys.map((key) => [key.id, key]));
  const keysByName = Map.groupBy(byId.values(), ({ name }) => name);
  return new Map(
    [...byId.values()].map(({ id, name, owner, createdAt }) => {
      const created = createdAt && `created ${formatDay(DateTime.fromISO(createdAt, { zone: ownZone.value }))}`;
      const more = [owner && (owner.isYou ? 'You' : owner.name), created].filter((part) => part !== undefined);
      return [id, more.length > 0 && (keysByName.get(name) ?? []).length > 1 ? `${name} (${more.join(', ')})` : name];
    }),
  );
}

export type KeyColumn = 'name' | 'owner' | 'created' | 'used' | 'expiry';

export const keySortValues: Readonly<Record<KeyColumn, (key: ApiKeyView) => SortValue>> = {
  name: (key) => key.name,
  owner: ownerName,
  created: (key) => Date.parse(key.createdAt),
  used: (key) => (key.lastUsedAt === null ? null : Date.parse(key.lastUsedAt)),
  expiry: (key) => (key.expiresAt === null ? null : Date.parse(key.expiresAt)),
};

export const keyCsvHead = [
  'ID',
  'Name',
  'Owner',
  'Owner’s email',
  'Created',
  'Last used',
  'Expiry',
  'Expiry time zone',
  'Expired',
] as const;

export function keyCsvRow(key: ApiKeyView, now: DateTime): string[] {
  return [
    key.id,
    key.name,
    ownerName(key),
    key.owner?.email ?? '',
    key.createdAt,
    key.lastUsedAt ?? 'Never',
    key.expiresAt ?? 'No expiration',
    key.expiryTimeZone ?? '',
    hasExpired(key, now) ? 'Expired' : '',
  ];
}

export type Page<Item> = { items: Item[]; index: number; count: number; first: number; last: number };

/** Returns one page of a list, or the last page if the list has become shorter. Pages count from zero, rows from one. */
export function paginate<Item>(all: readonly Item[], requested: number, size: number): Page<Item> {
  const count = Math.max(1, Math.ceil(all.length / size));
  const index = Math.min(Math.max(0, requested), count - 1);
  const items = all.slice(index * size, (index + 1) * size);
  return { items, index, count, first: items.length === 0 ? 0 : index * size + 1, last: index * size + items.length };
}
