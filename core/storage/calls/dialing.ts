import type { Knex } from 'knex';
import { type Settlement, stagesBefore, stateOf, waitingStages } from '../../domain/calls/call-states.ts';
import { troubleLimits } from '../../domain/calls/dialer-trouble.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ClaimedCall, DialerTrouble } from '../../domain/model.ts';
import type { DialingStore } from '../../domain/ports.ts';
import { inShortTransactions } from '../engine/chunks.ts';
import { required } from '../engine/columns.ts';
import type { Database } from '../engine/database.ts';
import type { CallRow } from '../engine/tables.ts';
import { cancelledAtSql, columnsAt, isAt, isDialing, isUndialed, stageAfterSql } from './call-stages.ts';
import { callKey } from './calls.ts';
import { endOverdueBatch, lapseBatch, lapsesAt, markBatchDue, unfinishedStates, unlocked } from './overdue-calls.ts';

/** The number of accounts that a claim looks at. The next claim starts with the accounts after them. */
const accountsAtOnce = 100;
/** The number of calls that a sweep changes in one transaction. */
const sweptAtOnce = 500;

export function dialingStore(database: Database): DialingStore {
  const { read, write } = database;
  let lastAccount = '';

  return {
    async claim(limit, provider, now, leaseUntil) {
      // Query with a reader first, because an idle dialer must not take the writer's lock every second.
      const accounts = await accountsWithDue(database, lastAccount, now, Math.min(limit, accountsAtOnce));
      const last = accounts.at(-1);
      if (last === undefined) return [];
      lastAccount = last;
      const each = Math.ceil(limit / accounts.length);
      return write.transaction(async (trx) => {
        await lapseBatch(trx, now, sweptAtOnce);
        const picked = await pick(trx, accounts, now, each);
        return claimPicked(trx, picked.slice(0, limit), provider, now, leaseUntil);
      });
    },

    async settle(call, settlement) {
      // The condition on the attempt excludes a dialer whose lease has expired. The condition on the stage keeps an outcome that the
      // provider has reported since the claim.
      const settle = (on: Knex) =>
        handedOff(on, call.contactId).whereRaw(isDialing).where({ attempt: call.attempt }).update(toColumns(settlement));
      if (settlement.to !== 'retry') return (await settle(write)) > 0;
      return write.transaction(async (trx) => {
        const settled = await settle(trx);
        await cancelIfRevoked(trx, call);
        return settled > 0;
      });
    },

    async reportOutcome(contactId, { state, detail, endedAt, durationSeconds }, now) {
      const open = handedOff(write, contactId)
        .whereRaw(isAt(...stagesBefore('outcome')))
        // If the call's data was erased, it stays erased, because the detail may name the person.
        .whereNotNull('phone');
      const changed = await open.update({
        ...columnsAt(state),
        ...columnsAt('taken'),
        ...{ detail, ended_at: endedAt, duration_seconds: durationSeconds },
        dialed_at: write.raw('coalesce(dialed_at, first_attempt_at)'),
        told_late_at: write.raw(`CASE WHEN ${isAt('unknown')} THEN CAST(? AS bigint) END`, [now]),
      });
      if (changed > 0) return 'recorded';
      const known = await handedOff(read, contactId).first('contact_id');
      return known === undefined ? null : 'not-needed';
    },

    lapse: (now, signal) => inShortTransactions((limit) => lapseBatch(write, now, limit), sweptAtOnce, signal),

    endForgotten: (now, signal) => inShortTransactions((limit) => endOverdueBatch(write, now, limit), sweptAtOnce, signal),

    recoverFromClockStep: (now, signal) => inShortTransactions((limit) => markBatchDue(write, now, limit), sweptAtOnce, signal),

    async noteTrouble(core, trouble, now) {
      const old = now - troubleLimits.noted.toMillis();
      await write('dialer_troubles').where({ core }).orWhere('noted_at', '<', old).delete();
      if (trouble) await write('dialer_troubles').insert({ core, ...trouble, noted_at: now });
    },

    async findTrouble(notedSince) {
      const oldest = read('dialer_troubles').where('noted_at', '>=', notedSince).orderBy('since').limit(1);
      const [found]: DialerTrouble[] = await oldest.select('since', 'reason');
      return found ?? null;
    },

    async queue(now) {
      const row = await read('calls')
        .whereNotNull('due_at')
        .where('due_at', '<=', now)
        .whereRaw(isAt(...waitingStages))
        .count({ due: '*' })
        .min({ oldest: 'due_at' })
        .first<{ due: number | string; oldest: Millis | null }>();
      return { due: Number(row.due), oldestDueAt: row.oldest };
    },
  };
}

/** Finds a call that was handed off, by its contact ID alone. The condition on the hand-off matches the index for this. */
function handedOff(on: Knex, contactId: string) {
  return on('calls').where({ contact_id: contactId }).whereNotNull('handoff');
}

/**
 * Finds the next accounts with due calls: those after a given account, then from the start. The recursion skips from account to account in
 * the index, because one account may have a million due calls.
 */
async function accountsWithDue(database: Database, after: string, now: Millis, limit: number): Promise<string[]> {
  const found = new Set<string>();
  for (const start of [after, '']) {
    const rows = await database.query<{ account_id: string }>(
      `WITH RECURSIVE waiting (account_id) AS (
         SELECT min(account_id) FROM calls WHERE due_at IS NOT NULL AND account_id > ?
         UNION ALL
         SELECT (SELECT min(calls.account_id) FROM calls WHERE due_at IS NOT NULL AND calls.account_id > waiting.account_id)
         FROM waiting WHERE waiting.account_id IS NOT NULL
       )
       SELECT account_id FROM waiting
       WHERE account_id IS NOT NULL
         AND EXISTS (SELECT 1 FROM calls WHERE calls.account_id = waiting.account_id AND due_at IS NOT NULL AND due_at <= ?)
       LIMIT ?`,
      [start, now, limit],
    );
    for (const { account_id } of rows) found.add(account_id);
    if (found.size >= limit) break;
  }
  return [...found].slice(0, limit);
}

type CallKey = [campaignId: string, contactId: string];

/** Picks the oldest due calls of all accounts, one from each account in turn. */
async function pick(trx: Knex.Transaction, accounts: string[], now: Millis, each: number): Promise<CallKey[]> {
  const queues: CallKey[][] = [];
  for (const account of accounts) {
    const due = trx('calls')
      .where('account_id', account)
      .whereNotNull('due_at')
      .where('due_at', '<=', now)
      // Exclude lapsed calls. There may have been too many to update their state.
      .where((inTime) => inTime.whereRaw(`NOT ${isUndialed}`).orWhereRaw(`${lapsesAt} >= ?`, [now]))
      .orderBy('due_at')
      .limit(each);
    const rows: Pick<CallRow, 'campaign_id' | 'contact_id'>[] = await unlocked(trx, due).select(callKey);
    queues.push(rows.map(({ campaign_id, contact_id }) => [campaign_id, contact_id]));
  }
  return Array.from({ length: each }, (_, turn) => queues.flatMap((queue) => queue.slice(turn, turn + 1))).flat();
}

const claimedColumns = [
  ...(['contact_id', 'request_id', 'campaign_id', 'phone', 'name', 'time_zone', 'variables', 'placed_at', 'not_before'] as const),
  ...(['not_after', 'attempt', 'handoff', 'first_attempt_at', 'provider'] as const),
];
type ClaimedRow = Pick<CallRow, (typeof claimedColumns)[number]>;

async function claimPicked(
  trx: Knex.Transaction,
  picked: CallKey[],
  provider: string,
  now: Millis,
  leaseUntil: Millis,
): Promise<ClaimedCall[]> {
  const handoff = stageAfterSql('claim');
  const rows: ClaimedRow[] = await trx('calls')
    .whereIn(callKey, picked)
    .where('due_at', '<=', now)
    .whereIn('state', unfinishedStates)
    .update({
      state: stateOf('open'),
      attempt: trx.raw('attempt + 1'),
      due_at: leaseUntil,
      // Keep the provider that has, or may have, the call.
      provider: trx.raw(`CASE ${handoff} WHEN 'open' THEN ? ELSE provider END`, [provider]),
      first_attempt_at: trx.raw('coalesce(first_attempt_at, ?)', [now]),
      handoff: trx.raw(handoff),
    })
    .returning(claimedColumns);
  return rows.map((row) => claimedCall(row, leaseUntil));
}

/**
 * Cancels a call whose key was revoked during the hand-off, if the provider hasn't taken it. The revoke itself can't cancel a call while
 * it's being handed off.
 */
async function cancelIfRevoked(trx: Knex.Transaction, { campaignId, contactId }: ClaimedCall): Promise<void> {
  await trx.raw(
    `UPDATE calls SET ${cancelledAtSql('k.cancelling_since')} FROM retired_api_keys k
     WHERE calls.campaign_id = ? AND calls.contact_id = ? AND ${isAt('retry')}
       AND k.id = calls.api_key_id AND k.cancelling_since IS NOT NULL`,
    [campaignId, contactId],
  );
}

function toColumns(settlement: Settlement): Partial<CallRow> {
  if ('dialedAt' in settlement)
    return { ...columnsAt(settlement.to), dialed_at: settlement.dialedAt, due_at: settlement.dueAt, detail: null };
  if ('dueAt' in settlement) {
    const { to, dueAt, detail } = settlement;
    return { ...columnsAt(to), due_at: dueAt, ...(detail === undefined ? {} : { detail }) };
  }
  const { to, detail, endedAt, durationSeconds } = settlement;
  return { ...columnsAt(to), detail, ended_at: endedAt, duration_seconds: durationSeconds };
}

function claimedCall(row: ClaimedRow, leaseUntil: Millis): ClaimedCall {
  if (row.handoff === null || row.handoff === 'retry') throw new Error(`A claim left the call ${row.contact_id} at ${row.handoff}.`);
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
  };
}
