import type { Knex } from 'knex';
import { stagesBefore, toState } from '../../domain/calls/call-states.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ClaimedCall, Objection, StopReason } from '../../domain/model.ts';
import { describeObjection, judge, listedDetail, toStopReason } from '../../domain/protection/judge.ts';
import { callKey, isAt, isUndialed, stageAfterSql } from '../calls/call-stages.ts';
import { required } from '../engine/columns.ts';
import type { Database, Dialect, Value } from '../engine/database.ts';
import type { CallRow } from '../engine/tables.ts';
import type { KnownRules } from '../protection/known-rules.ts';
import { isCallListed } from '../protection/listed.ts';
import type { KeyTurns } from './key-turns.ts';
import { blockBatch, type CallKeyPair, lapsesAt, lapseWithReason, postpone, unfinishedStates, unlocked } from './queue-changes.ts';

export type Claim = { provider: string; now: Millis; leaseUntil: Millis };
export type OnStopped = (reason: StopReason, calls: number) => void;

/**
 * Finds the next accounts with due calls: first those after a given account, then those from the start. The recursion skips from account to
 * account in the index, because one account may have a million due calls. It's a single statement, because idle dialers run it every
 * second.
 */
export async function accountsWithDue(database: Database, after: string, now: Millis, limit: number): Promise<string[]> {
  const rows = await database.query<{ account_id: string }>(
    `WITH RECURSIVE waiting (account_id, from_start) AS (
       SELECT min(account_id), 0 FROM calls WHERE due_at IS NOT NULL AND account_id > ?
       UNION ALL
       SELECT (SELECT min(calls.account_id) FROM calls WHERE due_at IS NOT NULL AND calls.account_id > coalesce(waiting.account_id, '')),
         CASE WHEN waiting.account_id IS NULL THEN 1 ELSE from_start END
       FROM waiting WHERE from_start = 0 OR waiting.account_id < ?
     )
     SELECT account_id FROM waiting
     WHERE account_id IS NOT NULL AND (from_start = 0 OR account_id <= ?)
       AND EXISTS (SELECT 1 FROM calls WHERE calls.account_id = waiting.account_id AND due_at IS NOT NULL AND due_at <= ?)
     LIMIT ?`,
    [after, after, after, now, limit],
  );
  return rows.map(({ account_id }) => account_id);
}

const pickedColumns = [
  ...(['campaign_id', 'contact_id', 'account_id', 'state', 'handoff', 'phone', 'time_zone', 'not_before', 'not_after'] as const),
  ...(['placed_at', 'api_key_id'] as const),
];
type PickedRow = Pick<CallRow, (typeof pickedColumns)[number]>;

/**
 * Picks the oldest due calls of these accounts. Accounts take turns, and so do the keys within an account.
 *
 * @param accounts how many calls an account gets in each turn @param others further due calls by account, of keys that have none of the
 * account's oldest calls
 */
export async function pick(
  trx: Knex.Transaction,
  accounts: ReadonlyMap<string, number>,
  { now, size, turns, others }: { now: Millis; size: number; turns: KeyTurns; others: ReadonlyMap<string, CallKeyPair[]> },
): Promise<PickedRow[]> {
  const perTurn = [...accounts.values()].reduce((sum, count) => sum + count, 0);
  const rounds = Math.ceil(size / perTurn);
  const queues: { count: number; calls: PickedRow[] }[] = [];
  for (const [account, count] of accounts) {
    const each = count * rounds;
    const due = () =>
      trx('calls')
        .where('account_id', account)
        .whereNotNull('due_at')
        .where('due_at', '<=', now)
        // Exclude calls that should have lapsed. There may have been too many to end all of them first.
        .where((inTime) => inTime.whereRaw(`NOT ${isUndialed}`).orWhereRaw(`${lapsesAt} >= ?`, [now]));
    const front: PickedRow[] = await unlocked(trx, due().orderBy('due_at').limit(each)).select(pickedColumns);
    const keys = others.get(account) ?? [];
    const behind: PickedRow[] = keys.length === 0 ? [] : await unlocked(trx, due().whereIn(callKey, keys)).select(pickedColumns);
    const positions = new Map(keys.map(([, contactId], index) => [contactId, index]));
    behind.sort((a, b) => (positions.get(a.contact_id) ?? 0) - (positions.get(b.contact_id) ?? 0));
    queues.push({ count, calls: turns.takeTurns(account, front, behind, front.length === each) });
  }
  return Array.from({ length: rounds }, (_, n) => queues.flatMap(({ count, calls }) => calls.slice(n * count, (n + 1) * count))).flat();
}

/** The rules' verdict on the selected calls. */
type JudgedCalls = {
  /** Calls to claim. If there's a reason in `stopped`, the provider may already have the call, and it must not be handed off again. */
  open: { key: CallKeyPair; stopped: string | null }[];
  held: Map<Millis, CallKeyPair[]>;
  refused: { objection: Objection; key: CallKeyPair }[];
};

/**
 * Checks calls against the current rules, which may have changed since they were placed. The transaction has already locked the calls, so
 * it sees every change of rules that was acknowledged before.
 */
export async function judgeCalls(trx: Knex.Transaction, rules: KnownRules, rows: readonly PickedRow[], now: Millis): Promise<JudgedCalls> {
  const rulesFor = await rules.current(rows, trx);
  const judged: JudgedCalls = { open: [], held: new Map(), refused: [] };
  for (const row of rows) {
    const key: CallKeyPair = [row.campaign_id, row.contact_id];
    const call = { phone: row.phone ?? '', timeZone: row.time_zone, notBefore: null, notAfter: row.not_after };
    const placedAt = row.not_before !== null && row.not_before > row.placed_at ? row.not_before : row.placed_at;
    // If a provider already has the call, there's nothing left to decide, because the claim only asks for its outcome.
    const judgement =
      row.handoff === 'taken' || row.phone === null ? ({ kind: 'open' } as const) : judge(rulesFor(row.campaign_id), call, now, placedAt);
    const mayBeTaken = row.state !== 'queued' && row.handoff !== 'retry';
    if (judgement.kind === 'open') judged.open.push({ key, stopped: null });
    else if (mayBeTaken) judged.open.push({ key, stopped: judgement.kind === 'held' ? closedNow : describeObjection(judgement) });
    else if (judgement.kind === 'held') judged.held.set(judgement.until, [...(judged.held.get(judgement.until) ?? []), key]);
    else judged.refused.push({ objection: judgement, key });
  }
  return judged;
}

const closedNow = 'Calling hours have ended.';

/** Postpones or ends the calls that must not be dialed now. @returns the number of calls */
export async function moveStopped(
  trx: Knex.Transaction,
  { held, refused }: JudgedCalls,
  now: Millis,
  onStopped: OnStopped,
): Promise<number> {
  let moved = 0;
  for (const [until, calls] of held) moved += await postpone(trx, calls, until);
  for (const { objection, key } of refused) {
    const detail = describeObjection(objection);
    const end = toStopReason(objection) === 'number' ? blockBatch : lapseWithReason;
    const ended = await end(trx, [key], now, detail);
    if (ended > 0) onStopped(toStopReason(objection), ended);
    moved += ended;
  }
  return moved;
}

const claimedColumns = [
  ...(['contact_id', 'request_id', 'campaign_id', 'phone', 'name', 'time_zone', 'variables', 'placed_at', 'not_before'] as const),
  ...(['not_after', 'attempt', 'handoff', 'first_attempt_at', 'provider'] as const),
];
type ClaimedRow = Pick<CallRow, (typeof claimedColumns)[number]> & { is_listed: Value | boolean };

/**
 * Claims calls, except those to numbers on a list, which it blocks. The statement itself checks the lists, so it respects every entry that
 * was committed before it started.
 *
 * @returns the claimed calls, and the number of blocked ones
 */
export async function claimCalls(
  { kind }: Database,
  trx: Knex.Transaction,
  open: JudgedCalls['open'],
  { provider, now, leaseUntil }: Claim,
): Promise<{ claimed: ClaimedCall[]; blocked: number }> {
  if (open.length === 0) return { claimed: [], blocked: 0 };
  const keys = open.map(({ key }) => key);
  const isListedNow = isCallListedAt[kind];
  const isBlockable = isAt(...stagesBefore('block'));
  const handoff = stageAfterSql('claim');
  const rows: ClaimedRow[] = await trx('calls')
    .whereIn(callKey, keys)
    .where('due_at', '<=', now)
    .whereIn('state', unfinishedStates)
    .whereRaw(`NOT (${isBlockable} AND ${isListedNow})`, [now])
    .update({
      state: toState('open'),
      attempt: trx.raw('attempt + 1'),
      due_at: leaseUntil,
      held_until: null,
      // Keep the provider that has, or may have, the call.
      provider: trx.raw(`CASE ${handoff} WHEN 'open' THEN ? ELSE provider END`, [provider]),
      first_attempt_at: trx.raw('coalesce(first_attempt_at, ?)', [now]),
      handoff: trx.raw(handoff),
    })
    .returning([...claimedColumns, trx.raw(`${isListedNow} AS is_listed`, [now])]);
  const reasons = new Map(open.map(({ key: [, contactId], stopped }) => [contactId, stopped]));
  const claimed = rows.map((row) => claimedCall(row, leaseUntil, row.is_listed ? listedDetail : (reasons.get(row.contact_id) ?? null)));
  if (claimed.length === keys.length) return { claimed, blocked: 0 };
  const done = new Set(rows.map((row) => row.contact_id));
  const left = keys.filter(([, contactId]) => !done.has(contactId));
  return { claimed, blocked: await blockIfListed({ kind }, trx, left, now) };
}

const isCallListedAt: Readonly<Record<Dialect, string>> = { sqlite: isCallListed('?'), postgres: isCallListed('CAST(? AS bigint)') };

/** Blocks the calls whose numbers are on a list. @returns the number of blocked calls */
export function blockIfListed(
  { kind }: Pick<Database, 'kind'>,
  trx: Knex.Transaction,
  calls: readonly CallKeyPair[],
  now: Millis,
): Promise<number> {
  return blockBatch(trx, calls, now, listedDetail, (waiting) => waiting.whereRaw(isCallListedAt[kind], [now]));
}

function claimedCall(row: ClaimedRow, leaseUntil: Millis, stopped: string | null): ClaimedCall {
  if (row.handoff === null || row.handoff === 'retry')
    throw new Error(`The call ${row.contact_id} was claimed, but its hand-off is ${row.handoff}.`);
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
    firstAttemptAt: required(row.first_attempt_at, 'first_attempt_at'),
    provider: required(row.provider, 'provider'),
    attempt: row.attempt,
    handoff: row.handoff,
    leaseUntil,
    stopped,
  };
}
