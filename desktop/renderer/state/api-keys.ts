import { DateTime } from 'luxon';
import type { ApiKeyDetailsView, ApiKeyView, ChangeApiKey } from '#contract/console/api-keys.ts';
import { customRange, type Expiration, expiresSoon, expiryInstant, isExpired, isWithin } from '#contract/expiry.ts';
import { apiKeyHeader, placeCallPath } from '#contract/headers.ts';
import { limits } from '#contract/limits.ts';
import { pathTo } from '#contract/route.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { canonicalNetworks, isInNetworks, parseNetwork } from '#contract/text/networks.ts';
import { shellWord } from '#contract/text/shell.ts';
import { foldText } from '#contract/text/text.ts';
import { dayProblem, isDay } from './days.ts';
import {
  formatDay,
  formatInstant,
  formatIsoDay,
  formatRelative,
  formatTimestamp,
  readWhole,
  type Sort,
  type SortValue,
  shorten,
  sorted,
} from './format.ts';

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

export function keysInView(
  keys: readonly ApiKeyView[],
  { search, filter, owner, sort }: { search: string; filter: KeyFilter; owner: string; sort: Sort<KeyColumn> },
  now: DateTime,
): ApiKeyView[] {
  const matches = filterKeys(keys, search, filter, now, owner);
  // Uses the core's order, which is stable even for keys with the same time.
  if (sort.column === 'created') return sort.isDescending ? matches : matches.toReversed();
  return sorted(matches, keySortValues[sort.column], sort.isDescending);
}

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

export function keysExpiringSoon(keys: readonly ApiKeyView[], now: DateTime): ApiKeyView[] {
  return keys.filter((key) => isExpiringSoon(key, now)).toSorted((a, b) => Date.parse(a.expiresAt ?? '') - Date.parse(b.expiresAt ?? ''));
}

export function isNameTaken(keys: readonly ApiKeyView[], name: string): boolean {
  const foldedName = foldText(name.trim());
  return foldedName !== '' && keys.some((key) => foldText(key.name.trim()) === foldedName);
}

export function keysWithSameName(keys: readonly ApiKeyView[], { id, name }: ApiKeyView): ApiKeyView[] {
  return keys.filter((key) => key.id !== id && key.name === name);
}

/** Returns the names that several keys have. @param keys may contain the same key several times */
export function sharedNames(keys: readonly NamedKey[]): Set<string> {
  const ids = new Map<string, string>();
  return new Set(
    keys.flatMap(({ id, name }) => {
      const first = ids.get(name) ?? id;
      ids.set(name, first);
      return first === id ? [] : [name];
    }),
  );
}

export function newestAfter(keys: readonly ApiKeyView[], older: ApiKeyView): ApiKeyView | null {
  const newer = keys.filter(({ createdAt }) => Date.parse(createdAt) > Date.parse(older.createdAt));
  return newer.toSorted((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt))[0] ?? null;
}

type NamedKey = Pick<ApiKeyView, 'id' | 'name'>;

/** The end of a key's ID, which tells apart keys with the same name. */
export function shortId(id: string): string {
  return `…${id.slice(-6)}`;
}

/** Returns the keys' labels by ID: their names, with the end of the ID if another key has the same name. */
export function labelKeys(keys: readonly NamedKey[]): Map<string, string> {
  const shared = sharedNames(keys);
  return new Map(keys.map(({ id, name }) => [id, shared.has(name) ? `${name} ${shortId(id)}` : name]));
}

/** Returns the label of a key that may not be listed yet. */
export function labelKey(key: NamedKey, others: readonly NamedKey[]): string {
  return labelKeys([...others, key]).get(key.id) ?? key.name;
}

export type KeyColumn = 'name' | 'owner' | 'created' | 'used' | 'expiry';

const keySortValues: Readonly<Record<KeyColumn, (key: ApiKeyView) => SortValue>> = {
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

/** @param timeZone the viewer's, in which the list shows times, too */
export function keyCsvRow(key: ApiKeyView, now: DateTime, timeZone: string): string[] {
  return [
    key.id,
    key.name,
    ownerName(key),
    key.owner?.email ?? '',
    formatTimestamp(key.createdAt, timeZone),
    key.lastUsedAt === null ? 'Never' : formatTimestamp(key.lastUsedAt, timeZone),
    key.expiresAt === null ? 'No expiration' : formatTimestamp(key.expiresAt, timeZone),
    key.expiryTimeZone ?? '',
    hasExpired(key, now) ? 'Expired' : '',
  ];
}

type Part<Item> = { items: Item[]; index: number; count: number; first: number; last: number };

/** Returns one page of a list, or the last page if the list has become shorter. Pages count from zero, rows from one. */
export function paginate<Item>(all: readonly Item[], requested: number, size: number): Part<Item> {
  const count = Math.max(1, Math.ceil(all.length / size));
  const index = Math.min(Math.max(0, requested), count - 1);
  const items = all.slice(index * size, (index + 1) * size);
  return { items, index, count, first: items.length === 0 ? 0 : index * size + 1, last: index * size + items.length };
}

/** The form's input. @property addresses one per line, or separated by commas or spaces */
type LimitsDraft = { addresses: string; callsPerDay: string };

export function toDraft({ addresses, callsPerDay }: ApiKeyView): LimitsDraft {
  return { addresses: addresses?.join('\n') ?? '', callsPerDay: callsPerDay === null ? '' : String(callsPerDay) };
}

function splitAddresses(text: string): string[] {
  return text.split(/[\s,;]+/).filter((part) => part !== '');
}

export function addressesProblem(text: string): string | null {
  const parts = splitAddresses(text);
  for (const part of parts) {
    const network = parseNetwork(part);
    if (typeof network === 'string') return `${shorten(part)}: ${network}`;
  }
  return parts.length > limits.networks ? `Enter at most ${limits.networks} addresses and networks.` : null;
}

export function callsPerDayProblem(text: string): string | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  const calls = readWhole(trimmed);
  const isValid = calls >= 1 && calls <= limits.callsPerDay;
  return isValid ? null : `Enter a whole number from 1 to ${formatCount(limits.callsPerDay)}, or leave it empty for no limit.`;
}

/** Returns only what the user changed, with the version they saw. Otherwise, an old dialog would undo what others have changed since. */
export function changedLimits(apiKey: ApiKeyView, draft: LimitsDraft): ChangeApiKey | null {
  const addresses = canonicalNetworks(splitAddresses(draft.addresses));
  const callsPerDay = draft.callsPerDay.trim() === '' ? null : readWhole(draft.callsPerDay);
  const hasNewAddresses = addresses.join() !== (apiKey.addresses ?? []).join();
  const change = {
    ...(hasNewAddresses ? { addresses: addresses.length === 0 ? null : addresses } : {}),
    ...(callsPerDay === apiKey.callsPerDay ? {} : { callsPerDay }),
  };
  return Object.keys(change).length === 0 ? null : { ...change, limitsVersion: apiKey.limitsVersion };
}

/** Warns if the addresses exclude the client that used the key last, or if the server can't tell clients apart. */
export function lockOutWarning(
  text: string,
  view: Pick<ApiKeyDetailsView, 'lastUsedAddress'> & { ignoredProxy?: string | undefined },
): string | null {
  const networks = splitAddresses(text)
    .map(parseNetwork)
    .filter((network) => typeof network !== 'string');
  if (networks.length === 0) return null;
  const { lastUsedAddress, ignoredProxy } = view;
  if (ignoredProxy !== undefined)
    return `The server sees the address of a proxy, ${ignoredProxy}, instead of its clients’ addresses. Ask the operator to add the proxy to TRUSTED_PROXIES first.`;
  if (lastUsedAddress === null || isInNetworks(networks, lastUsedAddress)) return null;
  return `The key was last used from ${lastUsedAddress}, which isn’t in this list. That client will be refused immediately.`;
}

/** Describes the limits of a key: "only from 2 networks, 1,000 calls per day". Empty if there are none. */
export function summarizeLimits({ addresses, callsPerDay }: Pick<ApiKeyView, 'addresses' | 'callsPerDay'>): string {
  const parts = [
    ...(addresses === null ? [] : [addresses.length === 1 ? `only from ${addresses[0]}` : `only from ${addresses.length} networks`]),
    ...(callsPerDay === null ? [] : [`${counted(callsPerDay, 'call')} per day`]),
  ];
  return parts.join(', ');
}

/** The variable that the command line reads the key from. */
const keyVariable = 'CALLKEY_API_KEY';

/** One of the numbers that Germany reserves for films, so no one has it. The simulated dialer reports the call as answered. */
const phone = '+493023125000';

/**
 * Builds a command that asks for the key and places a call, for any shell on Linux, macOS or in Git Bash: what isn't plain enough for fish
 * runs in `sh`. The key's value appears neither on the screen, nor in the shell's history, nor in the process list: `read` and `printf` are
 * built into `sh`, and curl reads the header from its input. If the command was pasted with another Enter after it, it asks for the key once
 * more, instead of sending an empty one.
 *
 * @param requestId must differ for each key, because the same ID doesn't place a second call
 */
export function exampleCall(server: string, campaignId: string, requestId: string): string {
  const url = server.replace(/\/+$/, '') + decodeURIComponent(pathTo({ path: placeCallPath }, { campaignId }));
  return `sh -c 'trap "stty echo; exit 1" INT; stty -echo
  printf "API key: " >&2; k=
  while [ -z "$k" ]; do read -r k || break; done
  stty echo; echo >&2; printf "${apiKeyHeader}: %s" "$k"' |
  curl ${shellWord(url)} \\
  -H @- -H 'Content-Type: application/json' \\
  -d ${shellWord(JSON.stringify({ requestId, contact: { phone } }))}`;
}

/** Formats the key's value as a line of a `.env` file. */
export function keyLine(keyValue: string): string {
  return `${keyVariable}=${keyValue}`;
}

export const expirationChoices = ['none', '1', '2', '3', '4', '5', 'custom'] as const;
type ExpirationChoice = (typeof expirationChoices)[number];

export const expirationLabels: Readonly<Record<ExpirationChoice, string>> = {
  none: 'No expiration',
  '1': '1 Year',
  '2': '2 Years',
  '3': '3 Years',
  '4': '4 Years',
  '5': '5 Years',
  custom: 'Custom',
};

/** The form's input, possibly incomplete. */
export type ExpirationDraft = { choice: ExpirationChoice | ''; date: string; timeZone: string };

/** What a draft results in at this moment: an expiration and its description, or the field that's missing or invalid. */
type Resolved = { ok: true; expiration: Expiration; text: string } | { ok: false; field: 'choice' | 'date'; problem: string };

const years = { '1': 1, '2': 2, '3': 3, '4': 4, '5': 5 } as const;

export function resolveExpiration({ choice, date, timeZone }: ExpirationDraft, now: DateTime): Resolved {
  if (choice === '') return { ok: false, field: 'choice', problem: 'Choose an expiration.' };
  if (choice === 'none') return { ok: true, expiration: { kind: 'none' }, text: 'Works until it’s revoked.' };
  if (choice !== 'custom') return worksUntil({ kind: 'years', years: years[choice] }, now, timeZone);
  const range = customRange(now, timeZone);
  if (date === '') return { ok: false, field: 'date', problem: `Choose a date ${describeRange(now, timeZone)}.` };
  if (!isDay(date)) return { ok: false, field: 'date', problem: dayProblem };
  if (!isWithin(date, range)) return { ok: false, field: 'date', problem: `The date must be ${describeRange(now, timeZone)}.` };
  return worksUntil({ kind: 'custom', date }, now, timeZone);
}

/** Describes which days are allowed for a custom expiration. These change at midnight in the time zone. */
export function describeRange(now: DateTime, timeZone: string): string {
  const { earliest, latest } = customRange(now, timeZone);
  return `from ${formatIsoDay(earliest)} to ${formatIsoDay(latest)}`;
}

/** Says that the machine's clock is wrong. @param leadMs negative if it's behind */
export function describeClockLead(leadMs: number): string {
  const [unit, size] = units.find(([, size]) => Math.abs(leadMs) >= size) ?? units[2];
  const difference = `${counted(Math.round(Math.abs(leadMs) / size), unit)} ${leadMs > 0 ? 'ahead of' : 'behind'}`;
  return `Your computer’s clock is ${difference} the server’s. The server decides when the key expires, so these dates follow its clock.`;
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

function worksUntil(expiration: Expiration, now: DateTime, timeZone: string): Resolved {
  const instant = expiryIn(timeZone, expiration, now);
  return { ok: true, expiration, text: instant ? `Works until ${formatInstant(instant)} (${formatRelative(instant, now)})` : '' };
}

function expiryIn(timeZone: string, expiration: Expiration, now: DateTime): DateTime | null {
  const end = expiryInstant(expiration, now, timeZone);
  return end === null ? null : DateTime.fromMillis(end, { zone: timeZone });
}

/** Formats the date that a choice results in, for its button. */
export function dateForChoice(choice: ExpirationChoice, now: DateTime, timeZone: string): string {
  if (choice === 'none') return 'until revoked';
  if (choice === 'custom') return 'choose a date';
  const instant = expiryIn(timeZone, { kind: 'years', years: years[choice] }, now);
  return instant ? formatDay(instant) : '';
}

/** Lists the given zone, `UTC`, and then every zone that the machine knows. */
export function timeZonesAfter(ownZone: string): string[] {
  return [...new Set([ownZone, 'UTC', ...Intl.supportedValuesOf('timeZone')])];
}

/** Returns the choice that a key was probably created with. A custom one gets no date, since the old one no longer makes sense. */
export function toExpirationChoice(apiKey: Pick<ApiKeyView, 'createdAt' | 'expiresAt' | 'expiryTimeZone'>): ExpirationChoice {
  if (apiKey.expiresAt === null) return 'none';
  const zone = apiKey.expiryTimeZone ?? 'utc';
  const created = DateTime.fromISO(apiKey.createdAt, { zone });
  const end = DateTime.fromISO(apiKey.expiresAt).toMillis();
  const matchesExpiry = (choice: keyof typeof years) => expiryInstant({ kind: 'years', years: years[choice] }, created, zone) === end;
  return expirationChoices.filter((choice) => choice !== 'none' && choice !== 'custom').find(matchesExpiry) ?? 'custom';
}
