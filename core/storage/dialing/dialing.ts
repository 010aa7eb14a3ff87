import type { Knex } from 'knex';
import { type Conclusion, type Settlement, stagesBefore, toState, waitingStages } from '../../domain/calls/call-states.ts';
import { troubleLimits } from '../../domain/calls/dialer-trouble.ts';
import { clockSkew } from '../../domain/deadlines.ts';
import type { Millis } from '../../domain/instant.ts';
import type { ClaimedCall, DialerTrouble } from '../../domain/model.ts';
import type { DialingStore } from '../../domain/ports/dialing.ts';
import type { OptOut } from '../../domain/ports/protection.ts';
import { recordAudit } from '../audit/audit.ts';
import { cancelledAtSql, columnsAt, isAt, isDialing } from '../calls/call-stages.ts';
import { countEnded, countTold } from '../calls/ended-calls.ts';
import { inShortTransactions } from '../engine/chunks.ts';
import { required } from '../engine/columns.ts';
import { type Database, requireSeen } from '../engine/database.ts';
import type { CallRow } from '../engine/tables.ts';
import { insertNumbers } from '../protection/added-numbers.ts';
import { knownRules } from '../protection/known-rules.ts';
import { accountsWithDue, blockIfListed, type Claim, claimCalls, judgeCalls, moveStopped, type OnStopped, pick } from './claims.ts';
import { keyTurns } from './key-turns.ts';
import { type CallKeyPair, endOverdueBatch, lapseBatch, markAllDue } from './queue-changes.ts';

/** The number of accounts that a claim looks at. The next claim starts with the accounts after them. */
const accountsPerClaim = 100;
/** The number of calls that a sweep changes in one transaction. */
const sweepBatchSize = 500;

/** The number of calls that a claim lets wait for calling hours before it claims the ones behind them, in transactions of `sweepBatchSize`. */
const maxRounds = 20;

export function dialingStore(database: Database, onStopped: OnStopped = () => undefined): DialingStore {
  const { read, write } = database;
  const rules = knownRules(database);
  const turns = keyTurns(database);
  const recordOutcome = outcomeStatement(database);
  const endOne = endingStatement(database);
  const cancelIfRevoked = cancelIfRevokedStatement(database);
  let lastAccount = '';

  /** Claims due calls of these accounts. @returns also how many it ended or postponed instead */
  function claimOnce(accounts: readonly string[], limit: number, size: number, claim: Claim, others: ReadonlyMap<string, CallKeyPair[]>) {
    return write.transaction(async (trx) => {
      await lapseBatch(trx, claim.now, sweepBatchSize);
      const picked = await pick(trx, accounts, { now: claim.now, each: Math.ceil(size / accounts.length), turns, others });
      const judged = await judgeCalls(trx, rules, picked.slice(0, size), claim.now);
      const { claimed, blocked } = await claimCalls(database, trx, judged.open.slice(0, limit), claim);
      if (blocked > 0) onStopped('do-not-call', blocked);
      return { claimed, moved: blocked + (await moveStopped(trx, judged, claim.now, onStopped)) };
    });
  }

  return {
    async claim(limit, provider, now, leaseUntil) {
      // Query with a reader first, because an idle dialer must not take the writer's lock every second.
      const accounts = await accountsWithDue(database, lastAccount, now, Math.min(limit, accountsPerClaim));
      const last = accounts.at(-1);
      if (last === undefined) return [];
      lastAccount = last;
      const others = await turns.findOthers(accounts, now, Math.ceil(limit / accounts.length));
      const all: ClaimedCall[] = [];
      // Calls that calling hours stop must not keep the ones behind them from being dialed, even if there are thousands.
      for (let round = 0, size = limit; round < maxRounds && all.length < limit; round++, size = sweepBatchSize) {
        const { claimed, moved } = await claimOnce(accounts, limit - all.length, size, { provider, now, leaseUntil }, others);
        all.push(...claimed);
        if (moved === 0) break;
      }
      return all;
    },

    async settle(call, settlement) {
      if ('endedAt' in settlement) return endOne(call, settlement);
      const settle = (on: Knex) =>
        handedOff(on, call.contactId).whereRaw(isDialing).where({ attempt: call.attempt }).update(toColumns(settlement));
      if (settlement.to !== 'retry') return (await settle(write)) > 0;
      return write.transaction(async (trx) => {
        const settled = await settle(trx);
        await cancelIfRevoked(call, trx);
        // The number may have been listed during the hand-off, and the next try may be hours away.
        const blocked = await blockIfListed(database, trx, [[call.campaignId, call.contactId]], settlement.at);
        if (blocked > 0) onStopped('do-not-call', blocked);
        return settled > 0;
      });
    },

    async reportOutcome(contactId, conclusion, now, optOut) {
      if (!optOut) {
        if (await recordOutcome(contactId, conclusion, now)) return 'recorded';
        const row = await handedOff(read, contactId).first('contact_id');
        return row === undefined ? null : 'not-needed';
      }
      const result = await write.transaction(async (trx) => {
        const isRecorded = await recordOutcome(contactId, conclusion, now, trx);
        const listed = await listNumberOfCall(trx, contactId, optOut, now);
        return listed === 'listed' ? (isRecorded ? 'recorded' : 'not-needed') : listed;
      });
      if (result === 'recorded' || result === 'not-needed') await requireSeen(database);
      return result;
    },

    lapse: (now, signal) => inShortTransactions((limit) => lapseBatch(write, now, limit), sweepBatchSize, signal),

    endForgotten: (now, signal) => inShortTransactions((limit) => endOverdueBatch(write, now, limit), sweepBatchSize, signal),

    async recoverFromClockStep(now, hasStepped, signal) {
      const clock = await read('clock').first('newest_at');
      const wasAhead = (clock?.newest_at ?? 0) > now + clockSkew.toMillis();
      return markAllDue(database, now, { size: sweepBatchSize, judgesHeldAgain: hasStepped || wasAhead, signal });
    },

    async noteTrouble(core, trouble, now) {
      const old = now - troubleLimits.noted.toMillis();
      await write('dialer_troubles').where({ core }).orWhere('noted_at', '<', old).delete();
      if (trouble) await write('dialer_troubles').insert({ core, ...trouble, noted_at: now });
    },

    async findTrouble(notedSince) {
      const oldest = read('dialer_troubles').where('noted_at', '>=', notedSince).orderBy('since').limit(1);
      const [trouble]: DialerTrouble[] = await oldest.select('since', 'reason');
      return trouble ?? null;
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

const conclusionColumns = { contact_id: 'text', outcome: 'text', detail: 'text', ended_at: 'bigint', duration_seconds: 'bigint' } as const;
const conclusionSql = 'state = r.outcome, due_at = NULL, detail = r.detail, ended_at = r.ended_at, duration_seconds = r.duration_seconds';

/** Finds calls that were handed off, by their contact ID alone. The condition on the hand-off matches the index for this. */
const isHandedOff = 'calls.contact_id = r.contact_id AND handoff IS NOT NULL';

/**
 * Returns a function that ends a claimed call. The condition on the attempt excludes a dialer whose lease has expired. The condition on the
 * stage keeps an outcome that the provider has reported since the claim.
 */
function endingStatement(database: Database) {
  const end = database.prepareCounted(
    { ...conclusionColumns, attempt: 'bigint' },
    (rows) => `UPDATE calls SET ${conclusionSql} FROM ${rows}
     WHERE ${isHandedOff} AND ${isDialing} AND calls.attempt = r.attempt`,
    { returned: ['contact_id'], count: countEnded, rows: 'one' },
  );
  return async ({ contactId, attempt }: ClaimedCall, { to, detail, endedAt, durationSeconds }: Ending): Promise<boolean> =>
    (await end([[contactId, toState(to), detail, endedAt, durationSeconds, attempt]])).length > 0;
}

/** Returns a function that records an outcome. The function returns false if the call has ended, was erased or wasn't handed off. */
function outcomeStatement(database: Database) {
  const record = database.prepareCounted(
    { ...conclusionColumns, told_at: 'bigint' },
    // If the call's data was erased, it stays erased, because the detail may name the person.
    (rows) => `UPDATE calls SET ${conclusionSql}, handoff = '${columnsAt('taken').handoff}',
       dialed_at = coalesce(dialed_at, first_attempt_at), told_late_at = CASE WHEN ${isAt('unknown')} THEN r.told_at END
     FROM ${rows} WHERE ${isHandedOff} AND ${isAt(...stagesBefore('outcome'))} AND phone IS NOT NULL`,
    { returned: ['contact_id'], count: countTold, rows: 'one' },
  );
  return async (contactId: string, conclusion: Conclusion, now: Millis, trx?: Knex.Transaction): Promise<boolean> => {
    const { state, detail, endedAt, durationSeconds } = conclusion;
    return (await record([[contactId, toState(state), detail, endedAt, durationSeconds, now]], undefined, trx)).length > 0;
  };
}

/**
 * Adds the number of a call to the list of its account, or of its partner if the account's opt-outs apply to the partner. @returns null if
 * the call wasn't handed off
 */
async function listNumberOfCall(
  trx: Knex.Transaction,
  contactId: string,
  optOut: OptOut,
  now: Millis,
): Promise<'listed' | 'erased' | null> {
  const call = await handedOff(trx, contactId).first('campaign_id', 'account_id', 'phone');
  if (!call) return null;
  if (call.phone === null) return 'erased';
  const account = await trx('accounts').where({ id: call.account_id }).first('partner_id', 'opt_outs_for_partner');
  const owner = {
    accountId: account?.opt_outs_for_partner ? null : call.account_id,
    partnerId: required(account?.partner_id ?? null, 'partner_id'),
  };
  const numbers = [{ id: optOut.id, phone: call.phone }];
  const entry = { reason: 'asked', source: 'outcome', note: null, createdBy: null, createdAt: now, endsAt: null } as const;
  const added = await insertNumbers(trx, { ...entry, owner, numbers, call: { campaignId: call.campaign_id, contactId } }, now);
  if (added > 0) await recordAudit(trx, optOut.buildEvent(owner));
  return 'listed';
}

/** Finds a call that was handed off, by its contact ID alone. The condition on the hand-off matches the index for this. */
function handedOff(on: Knex, contactId: string) {
  return on('calls').where({ contact_id: contactId }).whereNotNull('handoff');
}

/**
 * Cancels a call whose key was revoked during the hand-off, if the provider hasn't accepted it. Revoking the key can't cancel a call while
 * it's being handed off.
 */
function cancelIfRevokedStatement(database: Database) {
  const cancel = database.prepareCounted(
    { campaign_id: 'text', contact_id: 'text' },
    (rows) => `UPDATE calls SET ${cancelledAtSql('k.cancelling_since')} FROM ${rows} CROSS JOIN retired_api_keys k
     WHERE calls.campaign_id = r.campaign_id AND calls.contact_id = r.contact_id AND ${isAt('retry')}
       AND k.id = calls.api_key_id AND k.cancelling_since IS NOT NULL`,
    { returned: ['contact_id'], count: countEnded, rows: 'one' },
  );
  return ({ campaignId, contactId }: ClaimedCall, trx: Knex.Transaction) => cancel([[campaignId, contactId]], undefined, trx);
}

type Ending = Extract<Settlement, { endedAt: Millis }>;

function toColumns(settlement: Exclude<Settlement, Ending>): Partial<CallRow> {
  if ('dialedAt' in settlement)
    return { ...columnsAt(settlement.to), dialed_at: settlement.dialedAt, due_at: settlement.dueAt, detail: null };
  const { to, dueAt, detail } = settlement;
  return { ...columnsAt(to), due_at: dueAt, ...(detail === undefined ? {} : { detail }) };
}
