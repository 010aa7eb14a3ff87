import type { Knex } from 'knex';
import type { CallState } from '#contract/calls/calls.ts';
import { stagesBefore, toState } from '../../domain/calls/call-states.ts';
import { dialingLimits } from '../../domain/calls/dialing.ts';
import { clockSkew } from '../../domain/deadlines.ts';
import { type Millis, oneDay } from '../../domain/instant.ts';
import { maxDaysAhead } from '../../domain/protection/calling-hours.ts';
import { callKey, isAt, isDialing, isQueued, isUndialed, stageAfterSql } from '../calls/call-stages.ts';
import { endCalls } from '../calls/ended-calls.ts';
import { walkQueue } from '../calls/queued-calls.ts';
import { type Database, getDialect } from '../engine/database.ts';

export type CallKeyPair = [campaignId: string, contactId: string];

/** The maximum number of calls that one transaction lapses, ends, postpones or makes due. */
export const sweepBatchSize = 500;

const life = dialingLimits.life.toMillis();
/** SQL: when a call that hasn't been dialed lapses. */
export const lapsesAt = `coalesce(not_after, due_at + ${life})`;
/** The states of calls that haven't ended. */
export const unfinishedStates: CallState[] = [...new Set(stagesBefore('claim').map(toState))];

/**
 * Lapses calls whose `notAfter` has passed. Records that time as their end, no matter how late this runs, because the retention period
 * starts then.
 */
export async function lapseBatch(on: Knex, now: Millis, limit: number): Promise<number> {
  const endedAt = on.raw('CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END');
  const columns = { state: on.raw(stageAfterSql('lapse')), ended_at: endedAt, due_at: null };
  let lapsed = 0;
  // Update the stages separately, because each has its own index, and no index covers both.
  for (const stage of stagesBefore('lapse')) {
    const late = on('calls').whereRaw(isAt(stage)).whereNotNull('not_after').where('not_after', '<', now);
    if (lapsed < limit) lapsed += await endCalls(on, selectBatch(on, late, limit - lapsed).update(columns));
  }
  return lapsed;
}

/**
 * Selects these calls. A condition with a long list of pairs could become a filter on all calls of a campaign on PostgreSQL: for 500 of
 * 20,000 calls, that took 0.7 s, and ten times as long for ten times as many.
 */
export function selectAmong(on: Knex, calls: readonly CallKeyPair[]): Knex.QueryBuilder {
  if (getDialect(on) === 'sqlite') return on('calls').whereIn(callKey, calls);
  const columns = [calls.map(([campaignId]) => campaignId), calls.map(([, contactId]) => contactId)];
  const pairs = on.raw('unnest(?::text[], ?::text[]) AS pairs (campaign_id, contact_id)', columns);
  return on('calls').whereIn(callKey, on.from(pairs).select(callKey));
}

/** Blocks calls, except those that have been dialed. @param detail says why, without the number */
export async function blockBatch(
  on: Knex,
  calls: readonly CallKeyPair[],
  now: Millis,
  detail: string,
  narrow: (calls: Knex.QueryBuilder) => Knex.QueryBuilder = (all) => all,
): Promise<number> {
  const waiting = selectAmong(on, calls).whereRaw(isAt(...stagesBefore('block')));
  return endCalls(on, narrow(waiting).update({ state: on.raw(stageAfterSql('block')), ended_at: now, due_at: null, detail }));
}

/** Lapses calls for which calling hours leave no time. Skips those that have been dialed. */
export async function lapseWithReason(on: Knex, calls: readonly CallKeyPair[], now: Millis, detail: string): Promise<number> {
  const waiting = selectAmong(on, calls).whereRaw(isAt(...stagesBefore('lapse')));
  return endCalls(on, waiting.update({ state: on.raw(stageAfterSql('lapse')), ended_at: now, due_at: null, detail }));
}

/**
 * Postpones due calls, which the transaction has locked, until calling hours allow them. A call that waits for another attempt definitely
 * isn't with the provider, so its hour for retries starts again.
 *
 * Doesn't check again whether the calls are due, because on PostgreSQL, if many calls have just become due, the plan could compare each of
 * them with each of these. For 500 of 40,000 calls, that took more than five seconds.
 */
export async function postpone(on: Knex, calls: readonly CallKeyPair[], until: Millis): Promise<number> {
  return selectAmong(on, calls).whereRaw(isUndialed).update({
    due_at: until,
    held_until: until,
    first_attempt_at: null,
  });
}

/** Ends overdue calls. This is for cores without a dialer: with one, each call ends within hours of being due. */
export function endOverdueBatch(on: Knex, now: Millis, limit: number): Promise<number> {
  const forgotten = on('calls')
    .whereNotNull('due_at')
    .where('due_at', '<', now - life)
    .where((endless) => endless.whereRaw(`NOT ${isUndialed}`).orWhereNull('not_after'));
  const columns = { state: on.raw(stageAfterSql('forgotten')), ended_at: on.raw(`due_at + ${life}`), due_at: null };
  return endCalls(on, selectBatch(on, forgotten, limit).update(columns));
}

/**
 * Makes calls due if they'd wait longer than they could with a correct clock. A queued call waits until `notBefore` or until calling hours
 * open, which the next claim computes again; an open call until its lease ends; any other for at most `dialingLimits.outcome`. The hour for
 * retries starts again. A call in doubt also becomes due if it isn't known when its hour began, so that the next claim ends it.
 *
 * @param options.judgesHeldAgain whether the clock was wrong when calls were held. Otherwise, skips calls that aren't held for longer than
 * a rule could require, because checking a hundred thousand held calls again each hour kept PostgreSQL busy for minutes
 */
export function markAllDue(
  database: Database,
  now: Millis,
  options: { size: number; judgesHeldAgain: boolean; signal?: AbortSignal | undefined },
): Promise<number> {
  const { size, judgesHeldAgain, signal } = options;
  const latest = now + clockSkew.toMillis();
  const longest = maxDaysAhead * oneDay;
  const isHeldTooLong = judgesHeldAgain
    ? 'held_until IS NOT NULL'
    : `(held_until IS NOT NULL AND (placed_at > ${latest} OR (due_at > ${latest + longest} AND due_at > coalesce(not_before, 0) + ${longest})))`;
  // A call at `retry` may rightly wait longer than `dialingLimits.outcome`: until calling hours open or, if it has `notAfter`, for as long
  // as the provider's `Retry-After` says, but at most until right after its `notAfter`. It's limited only if the clock was wrong when calls
  // were held.
  const isLimited = judgesHeldAgain ? isDialing : isAt('open', 'doubt', 'taken');
  const isTooFar = `due_at > ${latest} AND (
    (${isQueued} AND (${isHeldTooLong} OR (held_until IS NULL AND due_at > coalesce(not_before, 0))))
    OR (${isAt('retry')} AND (${isHeldTooLong} OR (held_until IS NULL AND not_after IS NULL AND due_at > ${latest + dialingLimits.window.toMillis()})))
    OR (${isAt('open')} AND due_at > ${latest + dialingLimits.lease.toMillis()})
    OR (${isAt('doubt')} AND not_after IS NULL AND first_attempt_at > ${latest})
    OR (${isLimited} AND due_at > ${latest + dialingLimits.outcome.toMillis()}))`;
  return makeDue(database, now, { flag: isTooFar, locked: 'skip', size, signal });
}

/**
 * Makes the calls due that calling hours hold in an account, or in one of its campaigns, so that the next claim applies the current hours.
 */
export function markHeldDue(
  database: Database,
  now: Millis,
  scope: { accountId: string; campaignId: string | null },
  signal?: AbortSignal,
): Promise<number> {
  const flag = `held_until IS NOT NULL AND due_at > ${now}`;
  return makeDue(database, now, { flag, locked: 'wait', size: sweepBatchSize, signal, ...scope });
}

type Waiting = {
  /** SQL that says whether a call becomes due. */
  flag: string;
  /** The account, and its campaign, if only their calls become due. */
  accountId?: string;
  campaignId?: string | null;
  /** What to do about calls that another process has locked. */
  locked: 'skip' | 'wait';
  size: number;
  signal: AbortSignal | undefined;
};

/** Makes calls due. Reads the queue once, from start to end, because a million calls may wait. */
async function makeDue(database: Database, now: Millis, { campaignId = null, locked, ...queue }: Waiting): Promise<number> {
  const { write } = database;
  const dueAt = write.raw(`CASE WHEN ${isUndialed} AND not_before > ? THEN not_before ELSE CAST(? AS bigint) END`, [now, now]);
  const firstAttemptAt = write.raw(`CASE WHEN NOT ${isUndialed} THEN first_attempt_at END`);
  const columns = { due_at: dueAt, held_until: null, first_attempt_at: firstAttemptAt };
  let changed = 0;
  for await (const rows of walkQueue(database, queue)) {
    const due = rows.filter(({ flag, campaign_id }) => flag && (campaignId === null || campaign_id === campaignId));
    if (due.length === 0) continue;
    const keys = due.map((row): CallKeyPair => [row.campaign_id, row.contact_id]);
    const waiting = () => selectAmong(write, keys).whereRaw(queue.flag);
    const count = await selectBatch(write, waiting(), keys.length).update(columns);
    // Handle locked calls last, because waiting for them while holding many other locks could cause deadlocks.
    changed += locked === 'wait' && count < keys.length ? count + (await waiting().update(columns)) : count;
  }
  return changed;
}

/** Selects some of the matching calls in the queue for an update, and skips those that another process has locked. */
export function selectBatch(on: Knex, selected: Knex.QueryBuilder, limit: number): Knex.QueryBuilder {
  return selectUnlocked(on, selected, limit).whereIn('state', unfinishedStates);
}

/** Selects some of the matching calls in any state for an update, and skips those that another process has locked. */
export function selectUnlocked(on: Knex, selected: Knex.QueryBuilder, limit: number): Knex.QueryBuilder {
  const batch = unlocked(on, selected.limit(limit)).select(callKey);
  return on('calls').withMaterialized('some', batch).whereIn(callKey, on('some').select(callKey));
}

/** Locks rows, and skips those that another process has locked. SQLite locks the whole file instead. */
export function unlocked(on: Knex, calls: Knex.QueryBuilder): Knex.QueryBuilder {
  return getDialect(on) === 'postgres' ? calls.forUpdate().skipLocked() : calls;
}
