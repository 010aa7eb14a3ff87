import type { Knex } from 'knex';
import type { CallState } from '#contract/calls/calls.ts';
import { stagesBefore, stateOf } from '../../domain/calls/call-states.ts';
import { dialingLimits } from '../../domain/calls/dialing.ts';
import { clockSkew } from '../../domain/deadlines.ts';
import type { Millis } from '../../domain/instant.ts';
import { isAt, isDialing, isQueued, isUndialed, stageAfterSql } from './call-stages.ts';
import { callKey } from './calls.ts';

export type CallKeyPair = [campaignId: string, contactId: string];

const life = dialingLimits.life.toMillis();
/** SQL: when a call that hasn't been dialed lapses. */
export const lapsesAt = `coalesce(not_after, due_at + ${life})`;
/** The states of calls that haven't ended. */
export const unfinishedStates: CallState[] = [...new Set(stagesBefore('claim').map(stateOf))];

/**
 * Lapses calls whose `notAfter` has passed. Records that time as their end, no matter how late this runs, because retention counts from it.
 */
export async function lapseBatch(on: Knex, now: Millis, limit: number): Promise<number> {
  const endedAt = on.raw('CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END');
  const columns = { state: on.raw(stageAfterSql('lapse')), ended_at: endedAt, due_at: null };
  let lapsed = 0;
  // Each stage has its own index, and no index covers both.
  for (const stage of stagesBefore('lapse')) {
    const late = on('calls').whereRaw(isAt(stage)).whereNotNull('not_after').where('not_after', '<', now);
    if (lapsed < limit) lapsed += await updateBatch(on, late, limit - lapsed, columns);
  }
  return lapsed;
}

/** Blocks those of these calls that haven't been dialed. @param detail says why, without the number */
export function blockBatch(on: Knex, calls: readonly CallKeyPair[], now: Millis, detail: string): Promise<number> {
  const columns = { state: on.raw(stageAfterSql('block')), ended_at: now, due_at: null, detail };
  return on('calls')
    .whereIn(callKey, calls)
    .whereRaw(isAt(...stagesBefore('block')))
    .update(columns);
}

/** Ends overdue calls for cores without a dialer. With a dialer, each call ends within hours of being due. */
export function endOverdueBatch(on: Knex, now: Millis, limit: number): Promise<number> {
  const forgotten = on('calls')
    .whereNotNull('due_at')
    .where('due_at', '<', now - life)
    .where((endless) => endless.whereRaw(`NOT ${isUndialed}`).orWhereNull('not_after'));
  return updateBatch(on, forgotten, limit, {
    state: on.raw(stageAfterSql('forgotten')),
    ended_at: on.raw(`due_at + ${life}`),
    due_at: null,
  });
}

/**
 * Makes calls due if they wait longer than they could with a correct clock. A queued call waits until `notBefore` at the latest, an open
 * call until its lease ends, and any other for its outcome.
 */
export function markBatchDue(on: Knex, now: Millis, limit: number): Promise<number> {
  const latest = now + clockSkew.toMillis();
  const tooFar = on('calls')
    .where('due_at', '>', latest)
    .where((either) =>
      either
        .whereRaw(`(${isQueued} AND due_at > coalesce(not_before, 0))`)
        .orWhereRaw(`(${isAt('open')} AND due_at > ?)`, [latest + dialingLimits.lease.toMillis()])
        .orWhereRaw(`(${isDialing} AND due_at > ?)`, [latest + dialingLimits.outcome.toMillis()]),
    );
  const dueAt = on.raw(`CASE WHEN ${isQueued} AND not_before > ? THEN not_before ELSE CAST(? AS bigint) END`, [now, now]);
  return updateBatch(on, tooFar, limit, { due_at: dueAt });
}

/** Changes some of the matching calls, and skips those that another process has locked. */
async function updateBatch(on: Knex, found: Knex.QueryBuilder, limit: number, columns: object): Promise<number> {
  const some = unlocked(on, found.limit(limit)).select(callKey);
  return on('calls')
    .withMaterialized('some', some)
    .whereIn(callKey, on('some').select(callKey))
    .whereIn('state', unfinishedStates)
    .update(columns);
}

/** Locks rows, and skips those that another process has locked. SQLite locks the whole file instead. */
export function unlocked(on: Knex, calls: Knex.QueryBuilder): Knex.QueryBuilder {
  // Check the driver's name, because `config.client` is a class here.
  return on.client.driverName === 'pg' ? calls.forUpdate().skipLocked() : calls;
}
