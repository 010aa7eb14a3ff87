import { localDay, plusDays, startOfDay } from '#contract/calendar.ts';
import type { ChangeApiKey } from '#contract/console/api-keys.ts';
import { counted } from '#contract/text/count.ts';
import { canonicalNetworks, isInNetworks, type Network, parseNetwork } from '#contract/text/networks.ts';
import { auditEvent } from './audit/audit.ts';
import type { KeyVisibility } from './directory/scope.ts';
import { instant, type Millis, plus, quarterHour } from './instant.ts';
import type { Actor, ApiKey, KeyLimits } from './model.ts';
import type { Ports, Today } from './ports.ts';
import { Problem, type Quota } from './problem.ts';

/**
 * @property allowed the last address that was allowed. Most keys are always used from the same address, and comparing it with 50 networks
 * takes 1 µs
 */
type Parsed = { networks: readonly Network[]; allowed: string | undefined };
const parsedLimits = new WeakMap<KeyLimits, Parsed>();

/** Whether a key with these limits is accepted from an address. */
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

/** Returns the next midnight in a time zone. */
export function nextMidnight(at: Millis, timeZone: string): Millis {
  return instant(startOfDay(plusDays(localDay(at, timeZone), 1), timeZone));
}

/** Returns what's left of a key's calls for the day; undefined if the key can place any number of calls. */
export function toQuota(limits: KeyLimits | null, placedToday: number | null, at: Millis): Quota | undefined {
  if (placedToday === null || limits === null || limits.callsPerDay === null) return undefined;
  const { callsPerDay, timeZone } = limits;
  const resetsIn = Math.ceil((nextMidnight(at, timeZone) - at) / 1_000);
  return { callsPerDay, left: Math.max(0, callsPerDay - placedToday), resetsIn };
}

/**
 * Changes the limits of a key. This takes effect at the next request, in every process: see storage/keys/authorization.ts. If nothing
 * changes, nothing is recorded.
 */
export async function changeLimits(
  ports: Ports,
  { visibility, actor }: { visibility: KeyVisibility; actor: Actor },
  id: string,
  change: ChangeApiKey,
): Promise<ApiKey> {
  const store = ports.stores.apiKeys;
  const apiKey = await findKeyToChange(ports, visibility, id);
  const before = apiKey.limits?.version ?? null;
  if (change.limitsVersion !== undefined && change.limitsVersion !== before) throw concurrentChange();
  const limits = applyChange(ports, apiKey, change);
  const today = describeToday(ports, apiKey);
  if (describeLimits(limits) === describeLimits(apiKey.limits)) {
    // Count the calls again, because an earlier attempt at the same change may have failed before all of them were counted.
    if (change.callsPerDay != null) await store.recount(id, today);
    return apiKey;
  }
  const event = auditEvent(ports, actor, 'api-key.limited', { kind: 'api-key', id, name: apiKey.name }, apiKey.eventScope);
  if (!(await store.limit(id, before, limits, today, { ...event, detail: describeLimits(limits) }))) {
    if (await store.find(visibility, id)) throw concurrentChange();
    throw keyNotFound();
  }
  return { ...apiKey, limits };
}

function describeToday({ clock, randomness }: Ports, { timeZone }: ApiKey): Today {
  const now = clock.now();
  const day = localDay(now, timeZone);
  const from = instant(startOfDay(day, timeZone));
  const lowestId = (at: Millis) => randomness.idsAround(at).lowestId;
  const ids = Array.from({ length: Math.ceil((now - from) / quarterHour) }, (_, n) => lowestId(plus(from, n * quarterHour)));
  return { day, from, before: nextMidnight(now, timeZone), ids, recentId: lowestId(now) };
}

function applyChange(ports: Ports, { limits, timeZone }: ApiKey, change: ChangeApiKey): KeyLimits | null {
  const { addresses = limits?.addresses ?? null, callsPerDay = limits?.callsPerDay ?? null } = change;
  const networks = canonicalNetworks(addresses ?? []);
  if (networks.length === 0 && callsPerDay === null) return null;
  return { version: ports.randomness.id(), addresses: networks.length === 0 ? null : networks, callsPerDay, timeZone };
}

/** Describes limits in words, for the audit and the operator. */
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

/** Finds a key, and waits until what was read is in effect on all nodes of the database. @throws Problem `not-found` */
export async function findKeyToChange({ stores }: Ports, visibility: KeyVisibility, id: string): Promise<ApiKey> {
  const [apiKey] = await stores.apiKeys.findAll(visibility, [id]);
  if (!apiKey) throw keyNotFound();
  return apiKey;
}

/**
 * Returns the same problem for a key that the viewer can't see and one that doesn't exist, so that a viewer doesn't learn which IDs exist.
 */
export function keyNotFound(): Problem {
  return new Problem('not-found', "This API key doesn't exist, or you don't have access to it.");
}
