import type { Knex } from 'knex';
import { type Millis, oneDay, oneMinute } from '../../domain/instant.ts';
import type { ScopeContactLimits } from '../../domain/ports.ts';
import { inCallLanes } from '../engine/call-lanes.ts';
import { both, never, oneOf } from '../engine/conditions.ts';
import type { Lane } from '../engine/database.ts';
import { isAt, isOwnedBy } from '../queue/queue.ts';

/** SQL: a provider has, had or may have the call. One that a provider refused doesn't count. */
const wasHandedOff = `(dialed_at IS NOT NULL OR state = 'unknown' OR ${isAt('open', 'doubt', 'taken')})`;

/**
 * SQL with one binding, the latest time: when a provider called the number, at the latest. One that may have the call may be calling it
 * now, because its earlier attempts may have been refused.
 */
const handedOffAt = `coalesce(dialed_at, CASE WHEN state = 'dialing' THEN CAST(? AS bigint) ELSE ended_at END)`;

/** A number, and the limits that decide how often it may be called. */
export type Contact = { limits: ScopeContactLimits; phone: string };

const ownerId = ({ limits: { counts } }: Contact) => counts.accountId ?? counts.partnerId;

/** Names the calls that count together: an account's calls to a number or, if the limits say so, those of all accounts of its partner. */
export const contactKey = (contact: Contact) => toKey(ownerId(contact), contact.phone);
const toKey = (owner: string, phone: string) => `${owner} ${phone}`;

/** The time of a call that a provider may have. It isn't now, which stands for a call of the same claim. */
const undecidedAt = (now: Millis) => now - 1;

/** Returns a function that tells whether a time that was read then will count, whatever providers respond. */
export const isDecided = (now: Millis) => (at: Millis) => at !== now && at !== undecidedAt(now);

/**
 * Reads when numbers were called, as far back as the longest of the limits.
 *
 * @param own a transaction in one of the lanes with calls, which also sees what it has changed itself; the others are read through their pools
 * @returns the times by {@link contactKey}, latest first
 */
export async function readContacts(
  database: Lane,
  contacts: readonly Contact[],
  now: Millis,
  own?: { lane: Lane; trx: Knex },
): Promise<Map<string, Millis[]>> {
  if (contacts.length === 0) return new Map();
  const latest = undecidedAt(now);
  const since = now - Math.max(...contacts.flatMap(({ limits: { limits } }) => [limits.days * oneDay, limits.minutesBetween * oneMinute]));
  const selects = Array.from(Map.groupBy(contacts, ownerId), ([owner, counted]) => {
    const [first] = counted;
    const phones = [...new Set(counted.map(({ phone }) => phone))];
    const calls = both(oneOf('phone', phones), first ? isOwnedBy(first.limits.counts) : never);
    return {
      sql: `SELECT CAST(? AS text) AS owner, phone, ${handedOffAt} AS at FROM calls
        WHERE ${calls.sql} AND handoff IS NOT NULL AND ${wasHandedOff} AND ${handedOffAt} > ?`,
      values: [owner, latest, ...calls.values, latest, since],
    };
  });
  const rows = await inCallLanes(database, (lane) =>
    lane.query<{ owner: string; phone: string; at: Millis }>(
      selects.map(({ sql }) => sql).join(' UNION ALL '),
      selects.flatMap(({ values }) => values),
      own?.lane === lane ? own.trx : undefined,
    ),
  );
  const latestFirst = rows.flat().toSorted((a, b) => b.at - a.at);
  const byKey = Map.groupBy(latestFirst, ({ owner, phone }) => toKey(owner, phone));
  return new Map(Array.from(byKey, ([key, found]) => [key, found.map(({ at }) => at)]));
}
