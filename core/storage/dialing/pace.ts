import type { Knex } from 'knex';
import { clockSkew } from '../../domain/deadlines.ts';
import { instant, type Millis, oneHour } from '../../domain/instant.ts';
import type { ScopePace } from '../../domain/model.ts';
import type { Lane } from '../engine/database.ts';

/** In ms: how far ahead of its moment a call may be claimed. Otherwise, a fast pace would need a transaction for each call. */
export const claimAhead = 250;
/** In ms: how soon a scope whose live calls are at their maximum is looked at again. */
const fullFor = 250;
/** In ms: how far ahead the next call of the slowest scope may leave. A later moment comes from a clock that was ahead. */
export const latestNext = toInterval(0.1) + claimAhead + clockSkew.toMillis();

/** Returns the time between two hand-offs. One percent longer, because the time between a claim and the hand-off varies. */
function toInterval(perSecond: number): number {
  return 1_010 / perSecond;
}

/** @property paces those of the server, the call's account and its campaign @property isLive whether it already counts as a live call */
type PacedCall = { paces: readonly ScopePace[]; isLive: boolean };

type Scope = { pace: ScopePace; interval: number; next: number; live: number };

/**
 * Locks scopes until the end of the transaction, in one order, so that no two transactions wait for each other. Whoever holds the lock of a
 * scope is the only one who claims calls that its pace or its contact limits count.
 *
 * @returns when the next call of each scope may leave
 */
export async function lockScopes(trx: Knex.Transaction, { kind }: Lane, scopeIds: readonly string[]): Promise<Map<string, Millis>> {
  const ids = [...new Set(scopeIds)].sort();
  if (ids.length === 0) return new Map();
  await trx('dialing_paces')
    .insert(ids.map((id) => ({ scope_id: id, next_at: instant(0) })))
    .onConflict('scope_id')
    .ignore();
  const rows = trx('dialing_paces').whereIn('scope_id', ids).orderBy('scope_id').select('scope_id', 'next_at');
  const locked: { scope_id: string; next_at: Millis }[] = await (kind === 'postgres' ? rows.forUpdate() : rows);
  return new Map(locked.map((row) => [row.scope_id, row.next_at]));
}

/**
 * Decides which calls may leave within the pace of all their scopes: in any span of T seconds, `perSecond` × T + 1 of them, and never more
 * than `liveCalls` at the same time.
 *
 * @param next when the next call of each scope may leave. The caller has locked the scopes
 * @param countLive counts a scope's live calls, up to a maximum
 */
export async function keepPace<Call extends PacedCall>(
  calls: readonly Call[],
  next: ReadonlyMap<string, Millis>,
  now: Millis,
  countLive: (pace: ScopePace, max: number) => Promise<number>,
) {
  const scopes = new Map<string, Scope>();
  for (const pace of calls.flatMap(({ paces }) => paces)) {
    if (scopes.has(pace.scopeId)) continue;
    const interval = pace.perSecond === null ? 0 : toInterval(pace.perSecond);
    // A moment that's further ahead than any claim sets it comes from a clock that was ahead.
    const known = next.get(pace.scopeId) ?? 0;
    const isSane = known <= now + interval + claimAhead + clockSkew.toMillis();
    const live = pace.liveCalls === null ? 0 : await countLive(pace, pace.liveCalls);
    scopes.set(pace.scopeId, { pace, interval, next: isSane ? known : now + interval, live });
  }
  const open: { call: Call; leavesAt: Millis }[] = [];
  const over: { call: Call; pace: ScopePace; until: Millis }[] = [];
  for (const call of calls) {
    const own = call.paces.flatMap(({ scopeId }) => scopes.get(scopeId) ?? []);
    const leavesAt = Math.ceil(Math.max(now, ...own.map((scope) => scope.next)));
    const full = call.isLive ? undefined : own.find(({ pace, live }) => pace.liveCalls !== null && live >= pace.liveCalls);
    const late = own.find((scope) => scope.next > now + claimAhead);
    const blocking = full ?? late;
    if (blocking) {
      if (full) full.next = Math.max(full.next, now + fullFor);
      over.push({ call, pace: blocking.pace, until: instant(Math.ceil(blocking.next)) });
      continue;
    }
    open.push({ call, leavesAt: instant(leavesAt) });
    for (const scope of own) {
      scope.next = leavesAt + scope.interval;
      if (!call.isLive) scope.live++;
    }
  }
  return {
    open,
    over,
    /** Records when the next call of each scope may leave. */
    async save(trx: Knex.Transaction): Promise<void> {
      for (const [scopeId, scope] of scopes)
        if (scope.next !== next.get(scopeId))
          await trx('dialing_paces')
            .where({ scope_id: scopeId })
            .update({ next_at: instant(Math.ceil(scope.next)) });
    },
  };
}

/** Builds the SQL condition that the pace of this scope counts a call. */
export function isPacedBy({ accountId, campaignId }: ScopePace): { sql: string; bindings: readonly string[] } {
  if (accountId === null) return { sql: '1 = 1', bindings: [] };
  if (campaignId === null) return { sql: 'account_id = ?', bindings: [accountId] };
  return { sql: 'account_id = ? AND campaign_id = ?', bindings: [accountId, campaignId] };
}

const maxKnown = 10_000;

/**
 * Spreads the calls that wait for a campaign's pace over the time ahead, in their order. Otherwise, a million of them would be in front of
 * the other calls of their account, and each claim would have to read them. They become due at least twice as fast as they may leave, so
 * that calls that end in between leave no gap.
 */
export function spreader(database: Lane) {
  /** When the last waiting call of each campaign becomes due. */
  const tails = new Map<string, number>();
  /** @returns a function that returns when the next of the campaign's waiting calls becomes due */
  return async (trx: Knex.Transaction, pace: ScopePace, first: Millis): Promise<() => Millis> => {
    const { scopeId, perSecond, liveCalls } = pace;
    if (tails.size > maxKnown) tails.clear();
    const interval = 1_000 / Math.max(5, 2 * (perSecond ?? 0), (liveCalls ?? 0) / 5);
    let next = Math.max(tails.get(scopeId) ?? 0, first);
    // The calls that were to become due by then may have been cancelled, or made due by a change.
    if (next > first && !(await hasWaiting(database, trx, pace, first))) next = first;
    return () => {
      const at = next;
      // Not further ahead than an hour, because the pace may change, or the clock be set back.
      next = at + interval > first + oneHour ? first : at + interval;
      tails.set(scopeId, next);
      return instant(Math.ceil(at));
    };
  };
}

/** Whether calls of a campaign that wait for its pace become due soon. */
async function hasWaiting(database: Lane, trx: Knex.Transaction, { accountId, campaignId }: ScopePace, from: Millis): Promise<boolean> {
  const rows = await database.query(
    `SELECT 1 FROM calls
     WHERE account_id = ? AND due_at IS NOT NULL AND due_at > ? AND due_at <= ? AND campaign_id = ? AND held_for = 'pace' LIMIT 1`,
    [accountId, from, from + 2_000, campaignId],
    trx,
  );
  return rows.length > 0;
}

/** Returns when the next call of any scope may leave, if that's after `now`. */
export async function nextInPace({ query }: Lane, now: Millis): Promise<Millis | null> {
  const [row] = await query<{ at: Millis | null }>('SELECT min(next_at) AS at FROM dialing_paces WHERE next_at > ?', [now]);
  return row?.at ?? null;
}
