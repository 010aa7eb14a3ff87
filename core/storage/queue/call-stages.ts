import type { Knex } from 'knex';
import type { CallState } from '#contract/calls/calls.ts';
import {
  type CallEvent,
  type EndState,
  type HandoffStage,
  handoffStages,
  isHandoffStage,
  type Stage,
  stagesBefore,
  toState,
  transitionsFor,
} from '../../domain/calls/call-states.ts';
import { getDialect, inTransaction, isOnShard } from '../engine/database.ts';
import { countSeparately } from '../engine/shards.ts';

/**
 * Builds the SQL that derives a call's stage (see domain/calls/call-states.ts) from `state` and `handoff`. A call that has ended keeps its
 * last hand-off. @param calls the name of the table
 */
function stageSql(calls: string): string {
  return `CASE ${calls}.state WHEN '${toState('open')}' THEN ${calls}.handoff ELSE ${calls}.state END`;
}

/**
 * Builds the SQL condition that a call is at one of these stages. The values are written as text, because the conditions of partial indexes
 * don't match parameters.
 */
export function isAt(...stages: readonly Stage[]): string {
  const before = stages.filter((stage) => !isHandoffStage(stage)).map((stage) => `state = '${stage}'`);
  const dialing = stages.filter(isHandoffStage);
  if (dialing.length > 0) before.push(`(state = '${toState('open')}' AND handoff IN (${dialing.map((stage) => `'${stage}'`).join(', ')}))`);
  return `(${before.join(' OR ')})`;
}

export const isQueued = isAt('queued');
/** SQL: the call can still be cancelled, or lapse. */
export const isUndialed = isAt(...stagesBefore('cancel'));
export const isDialing = isAt(...handoffStages);

/** Builds the SQL for the stage that an event moves a call to. It returns NULL if the event can't happen at the call's stage. */
export function stageAfterSql(event: Exclude<CallEvent, 'outcome'>): string {
  const cases = transitionsFor(event).flatMap(({ from, to }) => from.map((stage) => `WHEN '${stage}' THEN '${to}'`));
  return `CASE ${stageSql('calls')} ${cases.join(' ')} END`;
}

/** Returns the columns to set when a dialing call moves to this stage. */
export function columnsAt(to: HandoffStage): { handoff: HandoffStage };
export function columnsAt(to: EndState): { state: CallState; due_at: null };
export function columnsAt(to: HandoffStage | EndState): object {
  return isHandoffStage(to) ? { handoff: to } : { state: toState(to), due_at: null };
}

/** The table's primary key. The index by contact alone contains only calls that were handed off. */
export const callKey: readonly ['campaign_id', 'contact_id'] = ['campaign_id', 'contact_id'];

/*
 * Charts count ended calls by the quarter-hour when they were placed. On PostgreSQL, each statement that ends calls also counts them: triggers
 * can't, because Citus doesn't support them on distributed tables. On SQLite, triggers do this, because a statement can't change two tables
 * there, and cancelling in a transaction with two statements was 10% to 25% slower (measured).
 */

/** Runs an update that ends calls, and counts these calls. @returns the number of ended calls */
export async function endCalls(on: Knex, update: Knex.QueryBuilder): Promise<number> {
  if (getDialect(on) === 'sqlite') return update;
  const counted = ['campaign_id', 'placed_at', 'state'];
  if (isOnShard(on))
    return inTransaction(on, async (trx) => {
      const ended: object[] = await update.returning(counted).transacting(trx);
      await countSeparately(trx, ended);
      return ended.length;
    });
  const count = `INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls)
    SELECT campaign_id, placed_at - placed_at % 900000, state, count(*) FROM changed GROUP BY 1, 2, 3`;
  const [row]: { calls: number | string }[] = await on
    .with('changed', update.returning(counted))
    .with('counted', on.raw(count))
    .from('changed')
    .count({ calls: '*' });
  return Number(row?.calls ?? 0);
}
