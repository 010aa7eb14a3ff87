import type { Knex } from 'knex';
import { instant, type Millis, oneHour } from '../../domain/instant.ts';
import type { Clock, DepartureTime, ScopePace } from '../../domain/ports.ts';
import { callLane } from '../engine/call-lanes.ts';
import { both, type Condition, equal } from '../engine/conditions.ts';
import type { Lane } from '../engine/database.ts';
import { type CallKeyPair, isUndialed, queueSql, selectAmong } from '../queue/queue.ts';

/** In ms: how far ahead of its moment a call may be claimed. Otherwise, a fast pace would need a transaction for each call. */
export const claimAhead = 250;
/** In ms: how long before its moment a core claims a call, if nothing else makes it. */
const readyFor = 50;
/** In ms: how soon a scope whose live calls are at their maximum is looked at again. */
const fullFor = 250;
/** In ms: the shortest and longest time between a claim's decision and the moment of its first call. The core must have the call by then. */
const leads = { min: 20, max: 1_000 };
/**
 * In ms: how late a call may leave at least, and at most. The next claim's calls leave later by as much, so that no two are too close. A
 * busy machine needs more, because a call that's too late waits for another turn.
 */
const delays = { min: 12.5, max: 250 };
const maxMargin = 50;
/** In ms: a larger difference between the database's clock and the time that has passed is a step of the clock. */
const stepped = 1_000;

/**
 * SQL for the time that paces use: the database's, because cores whose own clocks differ must keep one pace together. On SQLite, that's the
 * machine's clock. A test's clock also stands for the database's.
 */
export function paceTimeSql({ kind }: Pick<Lane, 'kind'>, { standsForDatabase, now }: Clock): string {
  if (standsForDatabase) return String(now());
  return kind === 'sqlite' ? `CAST(unixepoch('subsec') * 1000 AS integer)` : 'CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)';
}

/** In ms: the time between two hand-offs, and how late each may leave. Claims add `margin`, so that lateness doesn't shorten the interval. */
function toGaps(perSecond: number, lateness: number): { interval: number; margin: number; delay: number } {
  const interval = 1_000 / perSecond;
  const margin = Math.min(interval / 20, maxMargin);
  return { interval, margin, delay: Math.max(margin, delays.min, Math.min(delays.max, 2 * lateness)) };
}

/** In ms: how far ahead the next call of a scope may leave. A later moment comes from a clock that was ahead. */
const latestNext = (interval: number) => interval + delays.max + claimAhead + leads.max;
/** The same for the slowest pace. */
export const latestNextOfAll = latestNext(10_000);

/** @property paces those of the server, the call's account and its campaign @property isLive whether it already counts as a live call */
type PacedCall = { paces: readonly ScopePace[]; isLive: boolean };

/** @property next_at when the next call may leave, by the database's clock @property spread_until see {@link spread} */
export type PaceRow = { scope_id: string; next_at: Millis; spread_until: Millis };

/**
 * Locks scopes until the end of the transaction, in one order, so that no two transactions wait for each other. No one else can claim calls
 * that a locked scope's pace or contact limits count.
 */
export async function lockScopes(trx: Knex.Transaction, { kind }: Lane, scopeIds: readonly string[]): Promise<Map<string, PaceRow>> {
  const ids = [...new Set(scopeIds)].sort();
  if (ids.length === 0) return new Map();
  await trx('dialing_paces')
    .insert(ids.map((id) => ({ scope_id: id, next_at: instant(0), spread_until: instant(0) })))
    .onConflict('scope_id')
    .ignore();
  const rows = trx('dialing_paces').whereIn('scope_id', ids).orderBy('scope_id').select('scope_id', 'next_at', 'spread_until');
  const locked: PaceRow[] = await (kind === 'postgres' ? rows.forUpdate() : rows);
  return new Map(locked.map((row) => [row.scope_id, row]));
}

/**
 * Returns the clock of paces for one lane, to be read once scopes are locked. It tells whether the clock has jumped ahead since the last
 * time, or may have, because then no one knows how long ago the last call left.
 */
export function paceClock(database: Lane, clock: Clock) {
  let last: { now: number; at: number } | undefined;
  /** In ms: how long the latest claims took from their decision to their end. */
  let took = 0;
  return {
    async read(trx: Knex.Transaction): Promise<PaceTime> {
      const [row] = await database.query<{ now: Millis }>(`SELECT ${paceTimeSql(database, clock)} AS now`, [], trx);
      const [now, at] = [row?.now ?? instant(0), performance.now()];
      const hasJumped = !clock.standsForDatabase && (last === undefined || now - last.now > at - last.at + stepped);
      last = { now, at };
      return { now, at, hasJumped, lead: Math.min(leads.max, Math.max(leads.min, 2 * took)) };
    },
    noteEnd({ at }: PaceTime): void {
      took = Math.max(performance.now() - at, took * 0.9);
    },
  };
}

/** @property at the same moment by the process's own clock, which never steps @property lead in ms */
type PaceTime = { now: Millis; at: number; hasJumped: boolean; lead: number };

/**
 * Decides which calls may leave within the pace of all their scopes: in any span of T seconds, `perSecond` × T + 1 of them, and never more
 * than `liveCalls` at the same time.
 *
 * @param rows the scopes, which the caller has locked
 * @param countLive counts a scope's live calls, up to a maximum
 */
export async function keepPace<Call extends PacedCall>(
  calls: readonly Call[],
  limit: number,
  rows: ReadonlyMap<string, PaceRow>,
  { now, at, hasJumped, lead, lateness }: PaceTime & { lateness: number },
  countLive: (pace: ScopePace, max: number) => Promise<number>,
) {
  /** @property lastDelay how late the call before `next` may leave: the next claim's calls leave later by as much */
  type Scope = { pace: ScopePace; interval: number; margin: number; delay: number; next: number; lastDelay: number; live: number };
  const scopes = new Map<string, Scope>();
  for (const pace of calls.flatMap(({ paces }) => paces)) {
    if (scopes.has(pace.scopeId)) continue;
    const gaps = pace.perSecond === null ? { interval: 0, margin: 0, delay: 0 } : toGaps(pace.perSecond, lateness);
    const known = rows.get(pace.scopeId)?.next_at ?? 0;
    const isUnclear = (hasJumped && known > 0) || known > now + latestNext(gaps.interval);
    const live = pace.liveCalls === null ? 0 : await countLive(pace, pace.liveCalls);
    const next = isUnclear ? now + gaps.interval + gaps.delay : known;
    scopes.set(pace.scopeId, { pace, ...gaps, next, lastDelay: gaps.delay - gaps.margin, live });
  }
  const open: { call: Call; leaves: DepartureTime | null }[] = [];
  const over: { call: Call; pace: ScopePace; inMs: number }[] = [];
  for (const call of calls) {
    if (open.length === limit) break;
    const own = call.paces.flatMap(({ scopeId }) => scopes.get(scopeId) ?? []);
    const full = call.isLive ? undefined : own.find(({ pace, live }) => pace.liveCalls !== null && live >= pace.liveCalls);
    const late = own.find((scope) => scope.next > now + lead + claimAhead);
    const blocking = full ?? late;
    if (blocking) {
      if (full && full.next < now + fullFor) Object.assign(full, { next: now + fullFor, lastDelay: 0 });
      over.push({ call, pace: blocking.pace, inMs: Math.max(0, blocking.next - now) });
      continue;
    }
    const paced = own.filter(({ interval }) => interval > 0);
    const leavesAt = Math.max(now + lead, ...paced.map((scope) => scope.next));
    const delay = Math.min(...paced.map((scope) => scope.delay));
    open.push({ call, leaves: paced.length === 0 ? null : { at: at + leavesAt - now, by: at + leavesAt - now + delay } });
    for (const scope of paced) {
      scope.next = leavesAt + scope.interval + scope.margin;
      scope.lastDelay = scope.delay - scope.margin;
    }
    for (const scope of own) if (!call.isLive) scope.live++;
  }
  return {
    open,
    over,
    /** Records when the next call of each scope may leave. */
    async save(trx: Knex.Transaction): Promise<void> {
      for (const [scopeId, { next, lastDelay }] of scopes) {
        const before = rows.get(scopeId)?.next_at;
        if (next === before) continue;
        const next_at = instant(Math.ceil(next + lastDelay));
        await trx('dialing_paces').where({ scope_id: scopeId }).update({ next_at });
      }
    },
  };
}

/** Builds the condition that the pace of this scope counts a call. */
export function isPacedBy({ accountId, campaignId }: ScopePace): Condition {
  return both(accountId === null ? null : equal('account_id', accountId), campaignId === null ? null : equal('campaign_id', campaignId));
}

/**
 * Spreads the calls that wait for a campaign's pace over the time ahead, in their order. Otherwise, a million of them would be in front of
 * the other calls of their account, and each claim would have to read them. They become due at least twice as fast as they may leave, so
 * that calls that end in between leave no gap. `spread_until` is when the last of them becomes due.
 *
 * @returns when each of the calls becomes due
 */
export async function spread(
  trx: Knex.Transaction,
  { scopeId, perSecond, liveCalls }: ScopePace,
  { first, count, known }: { first: Millis; count: number; known: Millis },
): Promise<Millis[]> {
  const interval = 1_000 / Math.max(5, 2 * (perSecond ?? 0), (liveCalls ?? 0) / 5);
  // Not further ahead than an hour, because the pace may change, or the clock be set back.
  const end = first + oneHour;
  let next: number = known > first && known <= end ? known : first;
  const times = Array.from({ length: count }, () => {
    const at = next;
    next = at + interval > end ? first : at + interval;
    return instant(Math.ceil(at));
  });
  await trx('dialing_paces')
    .where({ scope_id: scopeId })
    .update({ spread_until: instant(Math.ceil(next)) });
  return times;
}

/** The maximum number of waiting calls that are brought forward in a campaign, and of due calls that are read to find one of it. */
const maxMoved = 500;
const maxRead = 1_000;

/**
 * Brings calls forward that wait for their campaign's pace, if it has room and none of them is due: those that were to become due before
 * them may have been cancelled.
 */
export async function fillGaps(database: Lane, now: Millis, timeSql: string): Promise<void> {
  const campaigns = await database.query<{ id: string; account_id: string; spread_until: Millis }>(
    `SELECT c.id, c.account_id, p.spread_until FROM dialing_paces p JOIN campaigns c ON c.id = p.scope_id JOIN accounts a ON a.id = c.account_id
     WHERE p.spread_until > ? AND p.next_at <= ${timeSql}
       AND NOT EXISTS (SELECT 1 FROM dialing_stops WHERE scope_id IN (c.id, a.id, a.partner_id, ''))`,
    [now],
  );
  for (const { id, account_id, spread_until } of campaigns) {
    const lane = callLane(database, id);
    const due = await lane.query(
      `SELECT 1 FROM (
         SELECT campaign_id FROM ${queueSql(lane)} WHERE account_id = ? AND due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT ${maxRead}
       ) AS first_due WHERE campaign_id = ?`,
      [account_id, now, id],
    );
    if (due.length > 0) continue;
    const isSpread = `due_at > ? AND held_for = 'pace' AND ${isUndialed}`;
    const waiting = await lane.query<{ contact_id: string; due_at: Millis }>(
      `SELECT contact_id, due_at FROM ${queueSql(lane)}
       WHERE account_id = ? AND due_at IS NOT NULL AND ${isSpread} AND campaign_id = ? ORDER BY due_at LIMIT ${maxMoved}`,
      [account_id, now, id],
    );
    const [first] = waiting;
    if (!first) {
      await database
        .write('dialing_paces')
        .where({ scope_id: id, spread_until })
        .update({ spread_until: instant(0) });
      continue;
    }
    const early = first.due_at - now;
    const keys = waiting.map(({ contact_id }): CallKeyPair => [id, contact_id]);
    const columns = { due_at: lane.write.raw('due_at - ?', [early]), held_until: lane.write.raw('held_until - ?', [early]) };
    await selectAmong(lane.write, keys)
      .whereRaw(isSpread, [first.due_at - 1])
      .update(columns);
  }
}

/** Returns in how many milliseconds to claim the next call of any scope, if that's later than now. */
export async function nextInPace({ query }: Lane, timeSql: string): Promise<number | null> {
  const [row] = await query<{ wait: number | string | null }>(
    `SELECT min(next_at) - ${timeSql} - ${readyFor} AS wait FROM dialing_paces WHERE next_at > ${timeSql} + ${readyFor}`,
    [],
  );
  return row?.wait == null ? null : Number(row.wait);
}
