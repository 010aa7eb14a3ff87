import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { CallState } from '#contract/calls/calls.ts';
import type { HeldFor, StopScope } from '#contract/protection/dialing.ts';
import {
  type CallEvent,
  handoffStages,
  isHandoffStage,
  type Stage,
  stagesBefore,
  toState,
  transitionsFor,
} from '../../domain/calls/call-states.ts';
import { dialingLimits } from '../../domain/calls/dialing.ts';
import { clockSkew } from '../../domain/deadlines.ts';
import { type Millis, oneDay } from '../../domain/instant.ts';
import type { OwningScope } from '../../domain/model.ts';
import type { StopReason, StoredCall } from '../../domain/ports.ts';
import { Problem } from '../../domain/problem.ts';
import { maxDaysAhead } from '../../domain/protection/calling-hours.ts';
import { contactLimitDetail, pacedDetail, stoppedDetail } from '../../domain/protection/judge.ts';
import { countCalls, queryCalls, sumOfCalls } from '../engine/call-lanes.ts';
import { always, both, type Condition, either, equal, oneOf } from '../engine/conditions.ts';
import { getDialect, inChunks, type Lane, type Mode, pause, perLane, readSql, required, type Value } from '../engine/database.ts';
import { endCalls } from '../engine/ended-calls.ts';
import type { CallRow } from '../engine/tables.ts';

/** SQL: a call's stage (see domain/calls/call-states.ts). A call that has ended keeps its last hand-off. */
const stageSql = `CASE calls.state WHEN '${toState('open')}' THEN calls.handoff ELSE calls.state END`;

/** SQL: a call is at one of these stages. The values are text, because the conditions of partial indexes don't match parameters. */
export function isAt(...stages: readonly Stage[]): string {
  const before = stages.filter((stage) => !isHandoffStage(stage)).map((stage) => `state = '${stage}'`);
  const dialing = stages.filter(isHandoffStage);
  if (dialing.length > 0) before.push(`(state = '${toState('open')}' AND handoff IN (${dialing.map((stage) => `'${stage}'`).join(', ')}))`);
  return `(${before.join(' OR ')})`;
}

export const isQueued = isAt('queued');
/** SQL: the call can still be cancelled or blocked, or lapse. */
export const isUndialed = isAt(...stagesBefore('cancel'));
export const isDialing = isAt(...handoffStages);

/** SQL: the stage that an event moves a call to. It returns NULL if the event can't happen at the call's stage. */
function stageAfterSql(event: Exclude<CallEvent, 'outcome'>): string {
  const cases = transitionsFor(event).flatMap(({ from, to }) => from.map((stage) => `WHEN '${stage}' THEN '${to}'`));
  return `CASE ${stageSql} ${cases.join(' ')} END`;
}

/** The table's primary key. The index by contact alone contains only calls that were handed off. */
export const callKey: readonly ['campaign_id', 'contact_id'] = ['campaign_id', 'contact_id'];

export type StoredColumn =
  | ('contact_id' | 'request_id' | 'campaign_id' | 'phone' | 'name')
  | ('time_zone' | 'variables' | 'placed_at' | 'not_before' | 'not_after');

/** Returns what a request has stored, and nothing has changed since. */
export function storedCall(row: Pick<CallRow, StoredColumn>): StoredCall {
  return {
    contactId: row.contact_id,
    requestId: row.request_id,
    campaignId: row.campaign_id,
    phone: required(row.phone, 'phone'),
    name: row.name,
    timeZone: row.time_zone,
    variables: Object.fromEntries(JSON.parse(row.variables ?? '[]')),
    placedAt: row.placed_at,
    notBefore: row.not_before,
    notAfter: row.not_after,
  };
}

/** SQL: the number of a row of `calls` is on a do-not-call list. @param at the SQL of the time */
export function isListed(at: string): string {
  const listsPartner = 'CASE WHEN a.has_do_not_call IS NOT NULL OR p.has_do_not_call IS NOT NULL THEN p.id END';
  return `(SELECT 1 FROM accounts a CROSS JOIN partners p WHERE a.id = calls.account_id AND p.id = a.partner_id
    AND ${listsPartner} IS NOT NULL AND (SELECT 1 FROM do_not_call d WHERE d.partner_id = ${listsPartner} AND d.phone = calls.phone
      AND (d.account_id IS NULL OR d.account_id = a.id) AND (d.ends_at IS NULL OR d.ends_at >= ${at}) LIMIT 1) IS NOT NULL) IS NOT NULL`;
}

/* A key's queued calls are found in the queue's whole index, which contains the key: core/docs/decisions/one-index-for-the-queue.md. */

/** The columns of the index. The last one distinguishes calls that were placed and are due at the same time. */
const position = ['account_id', 'due_at', 'placed_at', 'api_key_id', 'contact_id'] as const;
type Found = Pick<CallRow, (typeof position)[number] | 'campaign_id'>;

/** Comes before every position in the index. */
const start: readonly Value[] = ['', 0, 0, '', ''];

/** Returns the SQL for the queue. After an ANALYZE, SQLite would read the table instead, and it contains every call ever placed. */
export const queueSql = ({ kind }: Pick<Lane, 'kind'>) => (kind === 'sqlite' ? 'calls INDEXED BY calls_due' : 'calls');

/** Returns the SQL for the calls that are being dialed. SQLite would read every call that a campaign ever had instead. */
export const dialingSql = ({ kind }: Lane) => (kind === 'sqlite' ? 'calls INDEXED BY calls_being_dialed' : 'calls');

/** Keys with these IDs, all keys of one creator (revoked or not), or all revoked keys whose queued calls still have to be cancelled. */
export type KeysWithCalls = { ids: readonly string[] } | { creatorId: string } | 'marked';
/** The calls of a stop's scope that were placed by the time of the stop. An empty ID stands for the server. */
type StoppedCalls = { scope: StopScope; scopeId: string; placedUntil: Millis };

type CallsToCancel = KeysWithCalls | StoppedCalls;

/** Builds the condition that a call is one of these. If there may be a million keys, it looks up each row's key. */
function isAmong(calls: CallsToCancel): Condition {
  const placedBy = (table: string) => `SELECT 1 FROM ${table} k WHERE k.id = calls.api_key_id`;
  if (calls === 'marked') return { sql: `EXISTS (${placedBy('revoked_api_keys')} AND k.cancelling_since IS NOT NULL)`, values: [] };
  if (isOfStop(calls)) return both(isInScope(calls), { sql: 'placed_at <= ?', values: [calls.placedUntil] });
  if ('ids' in calls) return oneOf('api_key_id', calls.ids);
  const { creatorId } = calls;
  const isOfUser = (table: string): Condition => ({ sql: `EXISTS (${placedBy(table)} AND k.creator_id = ?)`, values: [creatorId] });
  return either(isOfUser('api_keys'), isOfUser('revoked_api_keys'));
}

/** Builds the condition that a call belongs to a stop's scope. */
export function isInScope({ scope, scopeId }: Pick<StoppedCalls, 'scope' | 'scopeId'>): Condition {
  switch (scope) {
    case 'server':
      return always;
    case 'partner':
      return { sql: 'EXISTS (SELECT 1 FROM accounts a WHERE a.id = calls.account_id AND a.partner_id = ?)', values: [scopeId] };
    case 'account':
      return equal('account_id', scopeId);
    case 'campaign':
      return equal('campaign_id', scopeId);
  }
}

/** Builds the condition that a call belongs to an account or, if that's null, to any account of the partner. */
export function isOwnedBy({ accountId, partnerId }: OwningScope): Condition {
  if (accountId !== null) return equal('account_id', accountId);
  return { sql: 'account_id IN (SELECT id FROM accounts WHERE partner_id = ?)', values: [partnerId] };
}

/** Counts each key's calls that can be cancelled. @returns only the keys that have such calls */
export async function countQueued(database: Lane, keyIds: readonly string[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const ids of inChunks(keyIds)) {
    const { sql, values } = oneOf('api_key_id', ids);
    const rows = await queryCalls<{ api_key_id: string; calls: number }>(
      database,
      `SELECT api_key_id, count(*) AS calls FROM ${queueSql(database)}
       WHERE due_at IS NOT NULL AND ${sql} AND ${isUndialed} GROUP BY api_key_id`,
      values,
    );
    for (const row of rows) counts.set(row.api_key_id, (counts.get(row.api_key_id) ?? 0) + row.calls);
  }
  return counts;
}

/** Counts the calls of a stop's scope that wait. */
export function countUndialed(database: Lane, scope: Pick<StoppedCalls, 'scope' | 'scopeId'>): Promise<number> {
  const { sql, values } = isInScope(scope);
  const from = `${queueSql(database)} WHERE due_at IS NOT NULL AND ${isUndialed} AND ${sql}`;
  return countCalls(database, from, values);
}

/** Counts the calls in one lane that a provider has or may have, up to `max`. */
export async function countLive(
  lane: Lane,
  { sql, values }: Condition,
  { max = Number.MAX_SAFE_INTEGER, on }: { max?: number; on?: Knex | undefined } = {},
): Promise<number> {
  const [row] = await lane.query<{ live: number | string }>(
    `SELECT count(*) AS live FROM
     (SELECT 1 FROM ${dialingSql(lane)} WHERE state = 'dialing' AND ${isAt('open', 'doubt', 'taken')} AND ${sql} LIMIT ?) AS live_calls`,
    [...values, max],
    on,
  );
  return Number(row?.live ?? 0);
}

/**
 * Returns which of these keys have calls that a dialer is handing off, even if its lease is over. If the provider refuses one, it can still be
 * cancelled.
 */
export async function keysHandingOff(database: Lane, keys: KeysWithCalls): Promise<Set<string>> {
  const { sql, values } = isAmong(keys);
  const rows = await queryCalls<{ api_key_id: string }>(
    database,
    `SELECT DISTINCT api_key_id FROM ${queueSql(database)} WHERE due_at IS NOT NULL AND ${sql} AND ${isAt('open')}`,
    values,
  );
  return new Set(rows.map((row) => row.api_key_id));
}

/** The number of calls in one transaction. Other keys wait while it runs: see scripts/bench/README.md. */
const cancelBatchSize = 200;
/** In ms: how long a response waits for the calls of a revoked key, a deleted user or a stop to be cancelled. A million take a minute. */
export const soon = { ms: 700 };
/** @property isSoon ends it after `soon`. Housekeeping has to cancel the rest, and until then, claims cancel them instead */
export type Cancelling = { isSoon?: boolean; signal?: AbortSignal | undefined; size?: number };

/**
 * Cancels calls in short transactions, so that others can write in between, and then those that a batch has added in the meantime, because
 * it checked the keys or the stops before they changed.
 *
 * @returns the number of cancelled calls; false if `soon` wasn't enough
 * @throws Problem `unavailable` for a stop, or else Error, if a batch or a claim that began before doesn't end in time
 */
export async function cancelQueued(database: Lane, calls: CallsToCancel, at: Millis, how: Cancelling = {}): Promise<number | false> {
  const { isSoon = false, size = cancelBatchSize } = how;
  const signal = isSoon ? AbortSignal.timeout(soon.ms) : how.signal;
  const cancelAll = () => sumOfCalls(database, (lane) => cancelInLane(lane, calls, at, { size, signal }));
  try {
    const cancelled = await cancelAll();
    // Once the batches have ended, no more calls can be added.
    if (await database.awaitWriters()) return cancelled + (await cancelAll());
  } catch (error) {
    if (!isSoon || !signal?.aborted) throw error;
    if (await database.awaitWriters()) return false;
  }
  if (!isOfStop(calls)) throw new Error("A statement that writes calls didn't finish in time.");
  const detail = "Dialing is stopped, but some queued calls aren't cancelled yet. Repeat the request.";
  throw new Problem('unavailable', detail, { retryAfter: 5 });
}

function isOfStop(calls: CallsToCancel): calls is StoppedCalls {
  return typeof calls === 'object' && 'scope' in calls;
}

async function cancelInLane(lane: Lane, calls: CallsToCancel, at: Millis, part: QueuePart): Promise<number> {
  const among = both(isAmong(calls), { sql: isUndialed, values: [] });
  const why = isOfStop(calls) ? 'Dialing was stopped, and the queued calls were cancelled.' : undefined;
  let cancelled = 0;
  // Handle locked calls last, because waiting for them while holding many other locks could cause deadlocks. SQLite doesn't lock calls.
  for (const locked of lane.kind === 'sqlite' ? (['skip'] as const) : (['skip', 'wait'] as const)) {
    let before: number;
    // Repeat until nothing is left, because calls may have moved to a part of the queue that was already read.
    do {
      before = cancelled;
      for await (const rows of walkQueue(lane, { ...part, among }))
        cancelled += await cancelFound(lane, rows.map(toKeyPair), { at, locked, why });
    } while (cancelled > before);
  }
  return cancelled;
}

type WalkedRow = Found & { flag: Value | boolean };
/** @property accountId for the queue of one account @property size the number of calls on a page */
type QueuePart = { accountId?: string; size: number; signal: AbortSignal | undefined };

/**
 * Reads the queue once, from start to end, in pages. Changes between two pages don't make it read anything twice or skip anything.
 *
 * @param part.among which calls to read
 * @param part.flag SQL that says whether a call matches. It's selected as a column and not used as a condition, so that every page takes
 * the same time
 */
export async function* walkQueue(database: Lane, part: QueuePart & { among?: Condition; flag?: string }): AsyncGenerator<WalkedRow[]> {
  const { among = always, flag = always.sql, accountId, size, signal } = part;
  const { sql, values } = both(accountId === undefined ? null : equal('account_id', accountId), among);
  for (let after = accountId === undefined ? start : [accountId, ...start.slice(1)]; ; ) {
    signal?.throwIfAborted();
    const rows = await database.query<WalkedRow>(
      `SELECT ${[...position, 'campaign_id']}, CASE WHEN ${flag} THEN 1 ELSE 0 END AS flag FROM ${queueSql(database)}
       WHERE due_at IS NOT NULL AND ${sql} AND (${position}) > (?, ?, ?, ?, ?) ORDER BY ${position} LIMIT ?`,
      [...values, ...after, size],
    );
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    after = position.map((column) => last[column]);
    await setTimeout(pause);
  }
}

/** Cancels those of these calls that can still be cancelled. */
export async function cancelFound(
  lane: Lane,
  calls: readonly CallKeyPair[],
  { at, locked, why = 'The API key was revoked, and its queued calls were cancelled.' }: Cancellation,
  transaction?: Knex.Transaction,
): Promise<number> {
  const keys = calls.map((key) => [...key, at, why]);
  return (await statementsOf(lane).cancel[locked](keys, undefined, transaction)).changed;
}

/** @property why the calls' detail; by default, that their key was revoked */
type Cancellation = { at: Millis; locked: 'skip' | 'wait'; why?: string | undefined };

export type CallKeyPair = [campaignId: string, contactId: string];

export function toKeyPair({ campaign_id, contact_id }: Pick<CallRow, 'campaign_id' | 'contact_id'>): CallKeyPair {
  return [campaign_id, contact_id];
}

/** The maximum number of calls that one transaction lapses, ends, postpones or makes due. */
export const sweepBatchSize = 500;

const life = dialingLimits.life.toMillis();
/** SQL: when a call that hasn't been dialed lapses. */
export const lapsesAt = `coalesce(not_after, due_at + ${life})`;
/** The states of calls that haven't ended. */
const unfinishedStates: CallState[] = [...new Set(stagesBefore('claim').map(toState))];

/** In ms: for how long after a call may leave a scope's pace is still what keeps its calls waiting. */
export const paceIsRecent = 2_000;

/** SQL: the detail of a call that lapses. @param lapsesAt SQL for that time */
function lapseDetailSql(lapsesAt: string): string {
  return `CASE WHEN EXISTS (
      SELECT 1 FROM dialing_stops s LEFT JOIN accounts a ON a.id = calls.account_id
      WHERE s.scope_id IN (calls.campaign_id, calls.account_id, a.partner_id, '') AND s.at <= ${lapsesAt}
    ) THEN '${stoppedDetail}'
    WHEN held_for = 'contact-limit' AND held_until > ${lapsesAt} THEN '${contactLimitDetail}'
    WHEN (held_for = 'pace' AND held_until > ${lapsesAt}) OR (due_at <= ${lapsesAt} AND EXISTS (
      SELECT 1 FROM dialing_paces p WHERE p.scope_id IN (calls.campaign_id, calls.account_id, '') AND p.next_at > ${lapsesAt} - ${paceIsRecent}
    )) THEN '${pacedDetail}' ELSE detail END`;
}

/** The statements that move queued calls, prepared once for each database. */
const statementsOf = perLane((database) => {
  const prepare = <Found extends object>(name: string, mode: Mode, parts = {}) =>
    database.prepare<Found>(readSql(import.meta.url, name, database.kind, parts), mode);
  const lock = database.kind === 'postgres' ? 'FOR UPDATE OF calls' : '';
  return {
    cancel: {
      skip: prepare('cancel-queued', 'end', { lock: lock && `${lock} SKIP LOCKED` }),
      wait: prepare('cancel-queued', 'end', { lock }),
    },
    lapse: prepare<Pick<CallRow, 'detail'>>('lapse', 'end', { detail: lapseDetailSql('not_after') }),
    endUndialed: prepare('end-undialed', 'end', { isListed: isListed('r.now') }),
    hold: prepare('hold', 'write'),
  };
});

export type OnStopped = (reason: StopReason, calls: number) => void;

/** What the details of a lapsed call say if a rule has stopped it. */
const lapsedBecauseOf = [
  ['contact-limit', contactLimitDetail],
  ['stop', stoppedDetail],
  ['pace', pacedDetail],
] as const;

/** Lapses calls whose `notAfter` has passed. @returns the number of calls */
export async function lapseBatch(
  database: Lane,
  now: Millis,
  limit: number,
  onStopped?: OnStopped,
  trx?: Knex.Transaction,
): Promise<number> {
  const { changed, rows } = await statementsOf(database).lapse([now, limit], undefined, trx);
  reportStopped(rows, onStopped);
  return changed;
}

function reportStopped(ended: readonly Pick<CallRow, 'detail'>[], onStopped?: OnStopped): void {
  for (const [reason, text] of lapsedBecauseOf) {
    const calls = ended.filter(({ detail }) => detail === text).length;
    if (calls > 0) onStopped?.(reason, calls);
  }
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

/** See end-undialed.sql. */
export async function endUndialed(
  database: Lane,
  trx: Knex.Transaction,
  calls: readonly CallKeyPair[],
  now: Millis,
  { state, detail, ifListed = false }: { state: 'blocked' | 'lapsed'; detail: string; ifListed?: boolean },
): Promise<number> {
  return (await statementsOf(database).endUndialed([calls, state, now, detail, ifListed ? 1 : 0], undefined, trx)).changed;
}

/** See hold.sql. */
export async function holdCalls(
  database: Lane,
  trx: Knex.Transaction,
  calls: readonly CallKeyPair[],
  until: Millis,
  heldFor: HeldFor | null,
): Promise<number> {
  return (await statementsOf(database).hold([calls, until, heldFor], undefined, trx)).changed;
}

/** Ends overdue calls. This is for cores without a dialer: with one, each call ends within hours of being due. */
export async function endOverdueBatch(on: Knex, now: Millis, limit: number, onStopped?: OnStopped): Promise<number> {
  const forgotten = on('calls')
    .whereNotNull('due_at')
    .where('due_at', '<', now - life)
    .where((endless) => endless.whereRaw(`NOT ${isUndialed}`).orWhereNull('not_after'));
  const endsAt = `due_at + ${life}`;
  const detail = on.raw(`CASE WHEN ${isUndialed} THEN ${lapseDetailSql(endsAt)} ELSE detail END`);
  const columns = { state: on.raw(stageAfterSql('forgotten')), ended_at: on.raw(endsAt), due_at: null, detail };
  const ended = await endCalls(on, selectBatch(on, forgotten, limit).update(columns));
  reportStopped(ended, onStopped);
  return ended.length;
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
  database: Lane,
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

/** Makes the calls due that rules hold in an account, or in one of its campaigns, so that the next claim applies the current ones. */
export function markHeldDue(
  database: Lane,
  now: Millis,
  scope: { accountId: string; campaignId: string | null },
  signal?: AbortSignal,
): Promise<number> {
  const flag = `held_until IS NOT NULL AND due_at > ${now}`;
  return makeDue(database, now, { flag, locked: 'wait', size: sweepBatchSize, signal, ...scope });
}

/**
 * Makes calls due. Reads the queue once, from start to end, because a million calls may wait.
 *
 * @param waiting.flag SQL that says whether a call becomes due
 * @param waiting.campaignId for the calls of one campaign
 * @param waiting.locked what to do about calls that another process has locked
 */
async function makeDue(
  database: Lane,
  now: Millis,
  waiting: QueuePart & { flag: string; campaignId?: string | null; locked: 'skip' | 'wait' },
): Promise<number> {
  const { campaignId = null, locked, ...queue } = waiting;
  const { write } = database;
  const dueAt = write.raw(
    // A provider still has a taken call, so its outcome has the same time as before.
    `CASE WHEN ${isAt('taken')} THEN CAST(? AS bigint) + due_at - coalesce(dialed_at, due_at)
       WHEN ${isUndialed} AND not_before > ? THEN not_before ELSE CAST(? AS bigint) END`,
    [now, now, now],
  );
  const firstAttemptAt = write.raw(`CASE WHEN NOT ${isUndialed} THEN first_attempt_at END`);
  const columns = { due_at: dueAt, held_until: null, held_for: null, first_attempt_at: firstAttemptAt };
  let changed = 0;
  for await (const rows of walkQueue(database, queue)) {
    const due = rows.filter(({ flag, campaign_id }) => flag && (campaignId === null || campaign_id === campaignId));
    if (due.length === 0) continue;
    const keys = due.map(toKeyPair);
    const found = () => selectAmong(write, keys).whereRaw(queue.flag);
    const count = await selectBatch(write, found(), keys.length).update(columns);
    // Handle locked calls last: see `cancelInLane`.
    changed += locked === 'wait' && count < keys.length ? count + (await found().update(columns)) : count;
  }
  return changed;
}

/** Like {@link selectUnlocked}, but only calls that haven't ended. */
function selectBatch(on: Knex, selected: Knex.QueryBuilder, limit: number): Knex.QueryBuilder {
  return selectUnlocked(on, selected, limit).whereIn('state', unfinishedStates);
}

/** Selects some of the matching calls for an update, and skips those that another process has locked. */
export function selectUnlocked(on: Knex, selected: Knex.QueryBuilder, limit: number): Knex.QueryBuilder {
  const batch = unlocked(on, selected.limit(limit)).select(callKey);
  return on('calls').withMaterialized('some', batch).whereIn(callKey, on('some').select(callKey));
}

/** Locks rows, and skips those that another process has locked. SQLite locks the whole file instead. */
export function unlocked(on: Knex, calls: Knex.QueryBuilder): Knex.QueryBuilder {
  return getDialect(on) === 'postgres' ? calls.forUpdate().skipLocked() : calls;
}
