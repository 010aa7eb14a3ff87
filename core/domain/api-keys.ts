import { hash } from 'node:crypto';
import { localDay, plusDays, startOfDay } from '#contract/calendar.ts';
import { type ChangeApiKey, type CreateApiKey, type RevokeReason, revokeReasons } from '#contract/console/api-keys.ts';
import { customRange, expiryInstant, isWithin } from '#contract/expiry.ts';
import { makeKeyValue } from '#contract/key-value.ts';
import { limits } from '#contract/limits.ts';
import { counted, formatCount } from '#contract/text/count.ts';
import { canonicalNetworks, isInNetworks, type Network, parseNetwork } from '#contract/text/networks.ts';
import { foldText } from '#contract/text/text.ts';
import { auditEvent, cancelledCalls, joinDetail } from './audit/audit.ts';
import { chartDays, firstDayStart, groupByDay } from './calls/days.ts';
import { type KeyVisibility, scopeFor } from './directory/scope.ts';
import { instant, type Millis, oneDay, plus, quarterHour } from './instant.ts';
import type { ApiKey, Caller, Digest, KeyLimits, SignedInCaller, Viewer } from './model.ts';
import type { CancelQueuedCalls, Ports } from './ports.ts';
import { invalidField, notFound, Problem, type Quota } from './problem.ts';

/**
 * One round of SHA-256 is enough for a key value or session ID, because these are random and too long to guess. With a salt, no index could
 * find the digest.
 */
export function toDigest(secret: string): Digest {
  return hash('sha256', secret, 'hex');
}

/** Creates a key in the viewer's own scope. Storage has only the digest of its value. */
export async function createApiKey(ports: Ports, { viewer, actor }: SignedInCaller, { name, expiration, timeZone }: CreateApiKey) {
  const { owningScope } = scopeFor(viewer);
  if (!owningScope)
    throw new Problem('forbidden', 'Select an account or partner first. The key will have access only to that account or partner.');
  const now = ports.clock.now();
  const range = customRange(now, timeZone);
  if (expiration.kind === 'custom' && !isWithin(expiration.date, range)) {
    throw invalidField('expiration.date', `Must be a date from ${range.earliest} to ${range.latest}.`);
  }
  const expiresAt = expiryInstant(expiration, now, timeZone);
  const keyValue = makeKeyValue(ports.randomness.bytes);
  const apiKey: ApiKey = {
    id: ports.randomness.id(),
    name,
    creator: {
      ...{ id: viewer.id, name: viewer.name, email: viewer.email, isStaff: viewer.userType === 'staff' },
      ...{ isDisabled: false, lastSignInAt: ports.clock.now() },
    },
    owningScope,
    eventScope: owningScope,
    createdAt: now,
    lastUsedAt: null,
    expiresAt: expiresAt === null ? null : instant(expiresAt),
    expiryTimeZone: expiration.kind === 'none' ? null : timeZone,
    timeZone,
    callsCountedFrom: null,
    limits: null,
  };
  const event = auditEvent(ports, actor, 'api-key.created', { kind: 'api-key', id: apiKey.id, name }, owningScope);
  if (await ports.stores.apiKeys.create(apiKey, toDigest(keyValue), ports.maxActiveKeys, event)) return { apiKey, keyValue };
  const reached = `You have ${formatCount(ports.maxActiveKeys)} active API keys, the maximum on this server.`;
  throw new Problem('conflict', `${reached} Revoke a key that's no longer needed, then try again.`);
}

const readBatchSize = 1_000;

/** Returns the newest keys whose name contains a text, and the number of all. @param limit null for no limit */
export async function listApiKeys(
  { stores: { apiKeys: store } }: Ports,
  visibility: KeyVisibility,
  search = '',
  limit: number | null = limits.listedApiKeys,
): Promise<{ apiKeys: ApiKey[]; total: number }> {
  if (search === '' && limit !== null) return store.list(visibility, limit);
  const term = foldText(search);
  const apiKeys: ApiKey[] = [];
  let total = 0;
  for (let cursor: string | null = null; ; ) {
    const keys: ApiKey[] = await store.page(visibility, cursor, readBatchSize);
    const matches = keys.filter(({ name }) => foldText(name).includes(term));
    total += matches.length;
    for (const key of matches) if (limit === null || apiKeys.length < limit) apiKeys.push(key);
    const last = keys.at(-1);
    if (!last || keys.length < readBatchSize) return { apiKeys, total };
    cursor = last.id;
  }
}

export type KeyDetails = Awaited<ReturnType<typeof showApiKey>>;

export async function showApiKey(ports: Ports, viewer: Viewer, id: string, timeZone: string) {
  const scope = scopeFor(viewer);
  const { apiKeys, activity } = ports.stores;
  const details = await apiKeys.details(scope.apiKeys, id);
  if (!details) throw notFound('API key');
  const now = ports.clock.now();
  const days = chartDays(now, timeZone);
  const [counts, events, today] = await Promise.all([
    apiKeys.usage(id, firstDayStart(days)),
    activity.listOfApiKey({ userId: viewer.id, visibility: scope.activity }, id, limits.page),
    countToday(ports, details.apiKey, now),
  ]);
  const usage = groupByDay(days, counts).map(({ day, counts }) => ({
    day,
    placed: counts.reduce((sum, { placed }) => sum + placed, 0),
    cancelled: counts.reduce((sum, { cancelled }) => sum + cancelled, 0),
    refused: counts.reduce((sum, { refused }) => sum + refused, 0),
  }));
  return { ...details, usage, activity: events, today };
}

export async function showRevokedApiKey({ stores }: Ports, viewer: Viewer, id: string) {
  const scope = scopeFor(viewer);
  const apiKey = await stores.apiKeys.findRevoked(scope.apiKeys, id);
  if (!apiKey) throw notFound('API key');
  const [end, activity] = await Promise.all([
    stores.activity.endOfApiKey(id),
    stores.activity.listOfApiKey({ userId: viewer.id, visibility: scope.activity }, id, limits.page),
  ]);
  return { apiKey, end, activity };
}

async function countToday({ stores }: Ports, { id, limits, callsCountedFrom }: ApiKey, now: Millis) {
  const day = countingDay(limits, now);
  if (day === null || limits === null) return null;
  const { timeZone } = limits;
  const placed = await stores.apiKeys.placedOn(id, day);
  const countedFrom = callsCountedFrom !== null && callsCountedFrom >= startOfDay(day, timeZone) ? callsCountedFrom : null;
  return { day, timeZone, placed, countedFrom, resetsAt: nextMidnight(now, timeZone) };
}

export async function previewRevocation(ports: Ports, viewer: Viewer, id: string) {
  const store = ports.stores.apiKeys;
  const apiKey = await store.find(scopeFor(viewer).apiKeys, id);
  if (!apiKey) throw notFound('API key');
  // Include all of the quarter-hour in which the last 24 hours begin, so that none of a leaked key's calls is missing.
  const now = ports.clock.now();
  const since = plus(now, -oneDay - (now % quarterHour));
  const [queuedCalls, counts, addresses] = await Promise.all([
    store.countQueuedCalls(id),
    store.usage(id, since),
    store.addresses(id, since, limits.shownAddresses),
  ]);
  return { apiKey, queuedCalls, placed: counts.reduce((sum, { placed }) => sum + placed, 0), addresses };
}

/** Revokes a key. This takes effect at the next request, in every process: see storage/keys/authorization.ts. */
export async function revokeApiKey(
  ports: Ports,
  caller: Caller,
  id: string,
  cancelQueuedCalls: CancelQueuedCalls,
  why: Why = {},
): Promise<ApiKey> {
  const [apiKey] = await revoke(ports, caller, [id], cancelQueuedCalls, why);
  if (!apiKey) throw notFound('API key', caller.viewer);
  return apiKey;
}

/** Revokes keys in one transaction. `gone` lists those that the viewer can't see, or that someone else revoked first. */
export async function revokeApiKeys(
  ports: Ports,
  caller: Caller,
  { ids, cancelQueuedCalls, ...why }: Why & { ids: readonly string[]; cancelQueuedCalls: CancelQueuedCalls },
): Promise<{ revoked: string[]; gone: string[] }> {
  const requestedIds = [...new Set(ids)];
  const revoked = new Set((await revoke(ports, caller, requestedIds, cancelQueuedCalls, why)).map(({ id }) => id));
  return { revoked: requestedIds.filter((id) => revoked.has(id)), gone: requestedIds.filter((id) => !revoked.has(id)) };
}

export type Why = { reason?: RevokeReason | undefined; note?: string | undefined };

function describeReason({ reason, note }: Why): string | undefined {
  if (reason === undefined || (reason === 'other' && note !== undefined)) return note;
  return [revokeReasons[reason], ...(note === undefined ? [] : [note])].join(': ');
}

/** @returns the keys that this has revoked */
async function revoke(ports: Ports, { viewer, actor }: Caller, ids: readonly string[], cancelQueuedCalls: CancelQueuedCalls, why: Why) {
  const store = ports.stores.apiKeys;
  const apiKeys = await store.findToChange(scopeFor(viewer).apiKeys, ids);
  if (apiKeys.length === 0) return [];
  const detail = joinDetail(describeReason(why), cancelQueuedCalls && cancelledCalls);
  const events = apiKeys.map(({ id, name, eventScope }) => ({
    ...auditEvent(ports, actor, 'api-key.revoked', { kind: 'api-key', id, name }, eventScope),
    ...(detail === undefined ? {} : { detail }),
  }));
  const foundIds = apiKeys.map(({ id }) => id);
  const revoked = new Set(await store.revoke(foundIds, { cancelQueuedCalls, at: ports.clock.now() }, events));
  if (cancelQueuedCalls === 'soon') ports.onCallsLeft();
  return apiKeys.filter(({ id }) => revoked.has(id));
}

export function identifyApiKey(ports: Ports, viewer: Caller['viewer'], digest: Digest): Promise<ApiKey | null> {
  return ports.stores.apiKeys.findByDigest(scopeFor(viewer).apiKeys, digest);
}

/** @property allowed the last such address. Most keys are always used from one, and comparing it with 50 networks takes 1 µs */
type Parsed = { networks: readonly Network[]; allowed: string | undefined };
const parsedLimits = new WeakMap<KeyLimits, Parsed>();

export function allowsAddress(limits: KeyLimits | null, address: string): boolean {
  if (limits === null || limits.addresses === null) return true;
  let parsed = parsedLimits.get(limits);
  if (!parsed) {
    parsed = { networks: limits.addresses.map(parseNetwork).filter((network) => typeof network !== 'string'), allowed: undefined };
    parsedLimits.set(limits, parsed);
  }
  if (parsed.allowed === address) return true;
  if (!isInNetworks(parsed.networks, address)) return false;
  parsed.allowed = address;
  return true;
}

/** Returns the day, in the key's time zone, that a call counts for; null if the key can place any number of calls. */
export function countingDay(limits: KeyLimits | null, at: Millis): string | null {
  return limits === null || limits.callsPerDay === null ? null : localDay(at, limits.timeZone);
}

function nextMidnight(at: Millis, timeZone: string): Millis {
  return instant(startOfDay(plusDays(localDay(at, timeZone), 1), timeZone));
}

/** Returns what's left of a key's calls for the day; undefined if the key can place any number of calls. */
export function toQuota(limits: KeyLimits | null, placedToday: number | null, at: Millis): Quota | undefined {
  if (placedToday === null || limits === null || limits.callsPerDay === null) return undefined;
  const { callsPerDay, timeZone } = limits;
  const resetsIn = Math.ceil((nextMidnight(at, timeZone) - at) / 1_000);
  return { callsPerDay, left: Math.max(0, callsPerDay - placedToday), resetsIn };
}

/** Changes the limits of a key that the caller could also revoke, with the same effect at the next request. */
export async function changeApiKey(ports: Ports, { viewer, actor }: Caller, id: string, change: ChangeApiKey): Promise<ApiKey> {
  const store = ports.stores.apiKeys;
  const [apiKey] = await store.findToChange(scopeFor(viewer).apiKeys, [id]);
  if (!apiKey) throw notFound('API key', viewer);
  const before = apiKey.limits?.version ?? null;
  const limits = applyChange(ports, apiKey, change);
  // A repeated change isn't refused, because the response to the first one may have been lost.
  if (describeLimits(limits) === describeLimits(apiKey.limits)) return apiKey;
  if (change.limitsVersion !== undefined && change.limitsVersion !== before) throw concurrentChange();
  const event = auditEvent(ports, actor, 'api-key.limited', { kind: 'api-key', id, name: apiKey.name }, apiKey.eventScope);
  if (!(await store.limit(id, before, limits, { ...event, detail: describeLimits(limits) }))) {
    if (await store.find(scopeFor(viewer).apiKeys, id)) throw concurrentChange();
    throw notFound('API key', viewer);
  }
  return { ...apiKey, limits };
}

function applyChange(ports: Ports, { limits, timeZone }: ApiKey, change: ChangeApiKey): KeyLimits | null {
  const { addresses = limits?.addresses ?? null, callsPerDay = limits?.callsPerDay ?? null } = change;
  const networks = canonicalNetworks(addresses ?? []);
  if (networks.length === 0 && callsPerDay === null) return null;
  return { version: ports.randomness.id(), addresses: networks.length === 0 ? null : networks, callsPerDay, timeZone };
}

export function describeLimits(limits: KeyLimits | null): string {
  if (limits === null) return 'no limits';
  const { addresses, callsPerDay } = limits;
  const from = addresses === null ? [] : [`only from ${addresses.join(', ')}`];
  const calls = callsPerDay === null ? [] : [`at most ${counted(callsPerDay, 'call')} per day`];
  return [...from, ...calls].join('; ');
}

function concurrentChange(): Problem {
  return new Problem(
    'conflict',
    "Someone else changed this key's limits in the meantime. Check the current limits, then change them again.",
  );
}
