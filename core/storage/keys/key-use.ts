import { instant, type Millis, quarterHour } from '../../domain/instant.ts';
import type { Digest } from '../../domain/model.ts';
import type { Clock, KeyedRequest } from '../../domain/ports.ts';
import { inChunks, type Lane, type Value } from '../engine/database.ts';

/** In ms: between two writes of a key's rows. With `sweepEvery`, it must stay below 60,000, so that they're at most a minute behind. */
const writeEvery = 45_000;
const sweepEvery = 10_000;
/** The number of addresses that are written for each key at a time. */
const maxAddresses = 10;

/**
 * A key's use since `since`, which hasn't been written yet. `quarters` has the counts by the number of quarter-hours since 1970.
 * `addresses` has the time of the last use from each address, oldest first. It contains only the latest few, because with IPv6, each
 * request can have a new address.
 */
type Use = { at: Millis; address: string | null; addresses: Map<string, Millis>; since: Millis; quarters: Map<number, Counts> };
type Counts = { placed: number; cancelled: number; refused: number };

export type KeyUse = ReturnType<typeof createKeyUse>;

/**
 * Collects when keys were last used and what they did, and writes that in the background, so that an error doesn't fail any request. If a
 * core is killed, the uses that it hasn't written are lost: see core/docs/decisions/counts-by-quarter-hour.md.
 */
export function createKeyUse(database: Lane, clock: Clock, onError: (error: unknown) => void) {
  const unwritten = new Map<Digest, Use>();
  const writtenAt = new Map<Digest, number>();
  // Only update rows, because a revoked key must not return. Only move the time forward, because another core may have written a later use.
  const writeLastUsed = database.prepare(
    `UPDATE api_keys SET last_used_at = r.at, last_used_address = r.address
     FROM (SELECT e.value->>0 AS digest, CAST(e.value->>1 AS bigint) AS at, e.value->>2 AS address FROM {{rows}}) AS r
     WHERE api_keys.digest = r.digest AND (api_keys.last_used_at IS NULL OR api_keys.last_used_at < r.at)`,
    'write',
  );
  const writeAddresses = database.prepare(
    `INSERT INTO api_key_addresses (api_key_id, address, used_at)
     SELECT k.id, e.value->>1, CAST(e.value->>2 AS bigint) FROM {{rows}} CROSS JOIN api_keys k WHERE k.digest = e.value->>0
     ON CONFLICT (api_key_id, address) DO UPDATE SET used_at = excluded.used_at WHERE api_key_addresses.used_at < excluded.used_at`,
    'write',
  );
  const counts = [2, 3, 4].map((n) => `CAST(e.value->>${n} AS bigint)`);
  // Add to the counts, because other cores count the same keys.
  const writeUsage = database.prepare(
    `INSERT INTO api_key_usage (api_key_id, quarter_at, placed, cancelled, refused)
     SELECT k.id, CAST(e.value->>1 AS bigint), ${counts} FROM {{rows}} CROSS JOIN api_keys k WHERE k.digest = e.value->>0
     ON CONFLICT (api_key_id, quarter_at) DO UPDATE
     SET placed = api_key_usage.placed + excluded.placed, cancelled = api_key_usage.cancelled + excluded.cancelled,
       refused = api_key_usage.refused + excluded.refused`,
    'write',
  );

  function findUse(digest: Digest): Use {
    const existing = unwritten.get(digest);
    if (existing) return existing;
    const use = { at: instant(0), address: null, addresses: new Map(), since: clock.now(), quarters: new Map() };
    unwritten.set(digest, use);
    return use;
  }

  async function write(digests: Digest[]): Promise<void> {
    const now = clock.now();
    // Every process uses the same order, so that two cores that write the same keys wait for each other instead of deadlocking.
    for (const chunk of inChunks(digests.toSorted())) {
      const taken = chunk.map((digest) => ({ digest, use: findUse(digest) }));
      for (const { digest } of taken) unwritten.delete(digest);
      try {
        const used = taken.filter(({ use }) => use.address !== null);
        if (used.length > 0) await writeLastUsed(used.map(({ digest, use }) => [digest, use.at, use.address]));
        const addresses = taken.flatMap(({ digest, use }) => Array.from(use.addresses, ([address, at]) => [digest, address, at]));
        if (addresses.length > 0) await writeAddresses(addresses);
        const rows = taken.flatMap(usageRows);
        if (rows.length > 0) await writeUsage(rows);
      } catch (error) {
        for (const { digest, use } of taken) add(findUse(digest), use);
        throw error;
      }
      for (const { digest } of taken) writtenAt.set(digest, now);
    }
  }

  async function sweep(): Promise<void> {
    const now = clock.now();
    // Use the absolute difference. Otherwise, after a clock was set back, keys wouldn't be written until it has caught up.
    for (const [digest, at] of writtenAt) if (Math.abs(now - at) >= writeEvery) writtenAt.delete(digest);
    await write([...unwritten.keys()].filter((digest) => !writtenAt.has(digest)));
  }

  let underWay = Promise.resolve();
  const timer = setInterval(() => {
    underWay = underWay.then(sweep).catch(onError);
  }, sweepEvery).unref();

  return {
    /** Records that a key was used. @param did what the request did; omitted if it changed nothing */
    note({ digest, at, address }: Pick<KeyedRequest, 'digest' | 'at' | 'address'>, did?: 'placed' | 'cancelled'): void {
      const use = findUse(digest);
      if (at >= use.at) {
        // Move the address to the end, unless it's the latest one and already there.
        if (address !== use.address && !use.addresses.delete(address) && use.addresses.size >= maxAddresses) {
          const [oldest = ''] = use.addresses.keys();
          use.addresses.delete(oldest);
        }
        use.addresses.set(address, at);
        use.at = at;
        use.address = address;
      }
      if (did !== undefined) toCounts(use, Math.floor(at / quarterHour))[did]++;
    },
    /** Records that a key was refused because of the client's address. A refusal doesn't count as a use. */
    noteRefused(digest: Digest, at: Millis): void {
      toCounts(findUse(digest), Math.floor(at / quarterHour)).refused++;
    },
    /** Returns the age, in ms, of the oldest use that hasn't been written yet. */
    lag(): number {
      const now = clock.now();
      return [...unwritten.values()].reduce((longest, { since }) => Math.max(longest, now - since), 0);
    },
    /** Writes the rest, and stops. */
    async close(): Promise<void> {
      clearInterval(timer);
      await underWay;
      await write([...unwritten.keys()]).catch(onError);
    },
  };
}

function toCounts({ quarters }: Use, number: number): Counts {
  const existing = quarters.get(number);
  if (existing) return existing;
  const counts = { placed: 0, cancelled: 0, refused: 0 };
  quarters.set(number, counts);
  return counts;
}

/** Puts back a use that couldn't be written. */
function add(use: Use, { at, address, addresses, since, quarters }: Use): void {
  for (const [from, usedAt] of addresses) if (usedAt > (use.addresses.get(from) ?? 0)) use.addresses.set(from, usedAt);
  if (since < use.since) use.since = since;
  if (at > use.at) Object.assign(use, { at, address });
  for (const [number, { placed, cancelled, refused }] of quarters) {
    const counts = toCounts(use, number);
    counts.placed += placed;
    counts.cancelled += cancelled;
    counts.refused += refused;
  }
}

function usageRows({ digest, use }: { digest: Digest; use: Use }): Value[][] {
  return Array.from(use.quarters, ([number, { placed, cancelled, refused }]) => [digest, number * quarterHour, placed, cancelled, refused]);
}
