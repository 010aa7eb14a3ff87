import type { Knex } from 'knex';
import { type Settlement, waitingStages, withoutAttempt } from '../../domain/calls/call-states.ts';
import { dialingLimits, troubleLimits } from '../../domain/calls/dialing.ts';
import { clockSkew } from '../../domain/deadlines.ts';
import { type Millis, plus } from '../../domain/instant.ts';
import type { AuditEvent, OwningScope } from '../../domain/model.ts';
import type { ClaimedCall, Clock, Conclusion, DialerTrouble, DialingStore, WaitingFor } from '../../domain/ports.ts';
import { recordAudit } from '../audit/audit.ts';
import { callLane, earliest, findCallLane, inCallLanes, sumOfCalls } from '../engine/call-lanes.ts';
import { inShortTransactions, type Lane, perLane, readSql, required, requireSeen } from '../engine/database.ts';
import type { CallRow } from '../engine/tables.ts';
import { insertNumbers } from '../protection/do-not-call.ts';
import { knownRules } from '../protection/known.ts';
import {
  cancelFound,
  dialingSql,
  endOverdueBatch,
  isAt,
  isDialing,
  lapseBatch,
  markAllDue,
  type OnStopped,
  paceIsRecent,
  queueSql,
  sweepBatchSize,
} from '../queue/queue.ts';
import { blockIfListed, claimer, dueAccounts } from './claim.ts';
import { contactKey, readContacts } from './contact-limits.ts';
import { fillGaps, nextInPace, paceTimeSql } from './pace.ts';

export function dialingStore(database: Lane, clock: Clock, onStopped: OnStopped = () => undefined): DialingStore {
  const { read, write } = database;
  const rules = knownRules(database);
  const inLane = perLane((lane) => ({
    claim: claimer(database, lane, clock, rules, onStopped),
    end: endingStatement(lane),
    endWithOutcome: outcomeStatement(lane),
  }));
  const accounts = dueAccounts(database, clock);
  let gapsFilledAt = Number.NEGATIVE_INFINITY;

  return {
    nextInPace: () => nextInPace(database, paceTimeSql(database, clock)),

    async contactTimes(limits, phone, now) {
      return (await readContacts(database, [{ limits, phone }], now)).get(contactKey({ limits, phone })) ?? [];
    },

    async claim(limit, provider, now, leaseUntil, serverPace = null, lateness = 0) {
      const { shares, failures } = await accounts.findDue(limit, now);
      const claimIn = ([lane, share]: Parameters<typeof shares.set>, mayLock: boolean) =>
        inLane(lane).claim(share, { provider, now, leaseUntil, serverPace, lateness, mayLock });
      // Claims that lock a pace or contact limits also read the other lanes, whose connections would wait for that lock. So they take turns.
      const claims = await Promise.allSettled(Array.from(shares, (share) => claimIn(share, shares.size === 1)));
      for (const [n, share] of [...shares].entries()) {
        const result = claims[n];
        if (result?.status === 'fulfilled' && result.value === null)
          claims.splice(n, 1, ...(await Promise.allSettled([claimIn(share, true)])));
      }
      const claimed = claims.flatMap((result) => (result.status === 'fulfilled' ? (result.value ?? []) : []));
      const [failure] = [...failures, ...claims.filter((result) => result.status === 'rejected')];
      // Calls that were claimed must be dialed, even if the claim failed in another lane.
      if (claimed.length === 0 && failure) throw failure.reason;
      accounts.goOnAfter(claimed);
      // A claim that found nothing may have found only a gap. A busy dialer looks once a second.
      if (claimed.length === 0 || performance.now() > gapsFilledAt + 1_000) {
        gapsFilledAt = performance.now();
        await fillGaps(database, now, paceTimeSql(database, clock));
      }
      return claimed;
    },

    async settle(call, settlement, isAttempt = true) {
      const lane = callLane(database, call.campaignId);
      const { write } = lane;
      const update = (on: Knex, columns: Partial<CallRow>) =>
        handedOff(on, call.contactId).whereRaw(isDialing).where({ attempt: call.attempt }).update(columns);
      // The claim of a call that the provider has accepted wasn't counted as an attempt.
      const attempt = isAttempt || call.handoff === 'taken' ? call.attempt : withoutAttempt(call.attempt);
      if ('endedAt' in settlement) {
        if (attempt !== call.attempt) await update(write, { attempt });
        return inLane(lane).end({ ...call, attempt }, settlement);
      }
      const settle = (on: Knex) => update(on, { ...toColumns(settlement), ...(attempt === call.attempt ? {} : { attempt }) });
      if (settlement.to !== 'retry') return (await settle(write)) > 0;
      return write.transaction(async (trx) => {
        const settled = await settle(trx);
        await cancelIfRevoked(lane, trx, call);
        // Block the call now, because its number may have been listed during the hand-off, and the next attempt may be hours away.
        const blocked = await blockIfListed(lane, trx, [[call.campaignId, call.contactId]], settlement.at);
        if (blocked > 0) onStopped('do-not-call', blocked);
        return settled > 0;
      });
    },

    async recordOutcome(contactId, conclusion, now, toOptOut) {
      const lane = await findCallLane(database, async (each) => (await handedOff(each.read, contactId).first('contact_id')) !== undefined);
      if (lane === null) return null;
      const { read, write } = lane;
      const { endWithOutcome } = inLane(lane);
      if (!toOptOut) {
        if (conclusion && (await endWithOutcome(contactId, conclusion, now))) return 'recorded';
        const row = await handedOff(read, contactId).first('contact_id');
        return row === undefined ? null : 'not-needed';
      }
      const result = await write.transaction(async (trx) => {
        const isRecorded = conclusion !== null && (await endWithOutcome(contactId, conclusion, now, trx));
        const listed = await addOptOut(trx, contactId, toOptOut, now);
        return listed === 'listed' ? (isRecorded ? 'recorded' : 'not-needed') : listed;
      });
      if (result === 'recorded' || result === 'not-needed') await requireSeen(database);
      return result;
    },

    lapse(now, signal) {
      const lapseIn = (lane: Lane) => (limit: number) => lapseBatch(lane, now, limit, onStopped);
      return sumOfCalls(database, (lane) => inShortTransactions(lapseIn(lane), sweepBatchSize, signal));
    },

    endForgotten: (now, signal) =>
      sumOfCalls(database, ({ write }) =>
        inShortTransactions((limit) => endOverdueBatch(write, now, limit, onStopped), sweepBatchSize, signal),
      ),

    async recoverFromClockStep(now, hasStepped, signal) {
      const clock = await read('clock').first('newest_at');
      const wasAhead = (clock?.newest_at ?? 0) > now + clockSkew.toMillis();
      // If a core was killed while its clock was ahead, the trouble that it noted would be reported until the clock catches up.
      await write('dialer_troubles').where('noted_at', '>', plus(now, clockSkew.toMillis())).delete();
      const options = { size: sweepBatchSize, judgesHeldAgain: hasStepped || wasAhead, signal };
      return sumOfCalls(database, (lane) => markAllDue(lane, now, options));
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
      const rows = (await inCallLanes(database, (lane) => readQueue(lane, now, paceTimeSql(database, clock)))).flat();
      const waiting = new Map<WaitingFor, number>();
      for (const { why, calls } of rows) waiting.set(why, (waiting.get(why) ?? 0) + Math.round(Number(calls)));
      // A stop or a pace keeps calls waiting on purpose, so their age tells nothing.
      return { waiting, oldestDueAt: earliest(rows.map(({ why, oldest }) => (why === 'dialer' ? oldest : null))) };
    },
  };
}

type WaitingRow = { why: WaitingFor; calls: number | string; oldest: Millis | null };
/** The number of held calls that are read to find out what they wait for. If there are more, the rest is estimated by their proportions. */
const heldSample = 20_000;

/**
 * Counts due and held calls by what they wait for. Reads only indexes, because there may be millions, and reading their rows took ten times
 * as long as a statement may: so it counts all calls that are due, and subtracts the few that a provider has or may have.
 */
async function readQueue(lane: Lane, now: Millis, timeSql: string): Promise<WaitingRow[]> {
  const isStopped = `EXISTS (SELECT 1 FROM dialing_stops s JOIN accounts a ON a.id = q.account_id WHERE s.scope_id IN ('', a.id, a.partner_id))`;
  const isPaced = `EXISTS (SELECT 1 FROM dialing_paces p WHERE p.scope_id IN ('', q.account_id) AND p.next_at > ${timeSql} - ${paceIsRecent})`;
  const isWaiting = isAt(...waitingStages);
  const due = await lane.query<WaitingRow>(
    `SELECT CASE WHEN ${isStopped} THEN 'stop' WHEN ${isPaced} THEN 'pace' ELSE 'dialer' END AS why, sum(q.calls) AS calls, min(q.oldest) AS oldest
     FROM (
       SELECT account_id, count(*) AS calls, (
         SELECT c.due_at FROM calls c WHERE c.account_id = calls.account_id AND c.due_at IS NOT NULL AND c.due_at <= ? AND ${isWaiting} ORDER BY c.due_at LIMIT 1
       ) AS oldest
       FROM ${queueSql(lane)} WHERE due_at IS NOT NULL AND due_at <= ? GROUP BY account_id
       UNION ALL SELECT account_id, -count(*), NULL FROM ${dialingSql(lane)} WHERE ${isDialing} AND NOT ${isWaiting} AND due_at <= ? GROUP BY account_id
     ) AS q GROUP BY 1`,
    [now, now, now],
  );
  const isHeld = 'held_until IS NOT NULL AND due_at IS NOT NULL AND held_until > ?';
  const held = await lane.query<WaitingRow>(
    `SELECT why, calls * (SELECT count(*) FROM calls WHERE ${isHeld}) / sum(calls) OVER () AS calls, NULL AS oldest
     FROM (
       SELECT coalesce(held_for, 'calling-hours') AS why, count(*) AS calls
       FROM (SELECT held_for FROM calls WHERE ${isHeld} ORDER BY held_until LIMIT ${heldSample}) AS sample GROUP BY 1
     ) AS q`,
    [now, now],
  );
  return [...due, ...held];
}

function endingStatement(lane: Lane) {
  const settle = lane.prepare(readSql(import.meta.url, 'settle', lane.kind), 'end');
  return async ({ contactId, attempt }: ClaimedCall, { to, detail, endedAt, durationSeconds }: Ending): Promise<boolean> =>
    (await settle([contactId, to, detail, endedAt, durationSeconds, attempt])).changed > 0;
}

/** Returns a function that records an outcome, or returns false if the call has ended, was erased or wasn't handed off. */
function outcomeStatement(lane: Lane) {
  const record = lane.prepare(readSql(import.meta.url, 'outcome', lane.kind), 'end');
  return async (contactId: string, conclusion: Conclusion, now: Millis, trx?: Knex.Transaction): Promise<boolean> => {
    const { state, detail, endedAt, durationSeconds, answeredBy = null } = conclusion;
    const beganAt = Math.min(now, endedAt - (durationSeconds ?? 0) * 1_000);
    const given = [contactId, state, detail, endedAt, durationSeconds, now, answeredBy, beganAt, dialingLimits.lease.toMillis()];
    return (await record(given, undefined, trx)).changed > 0;
  };
}

/** Adds a call's number to the do-not-call list that its account's opt-outs apply to. @returns null if the call wasn't handed off */
async function addOptOut(
  trx: Knex.Transaction,
  contactId: string,
  toOptOut: (owner: OwningScope) => AuditEvent,
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
  const event = toOptOut(owner);
  const numbers = [{ id: event.subject.id, phone: call.phone }];
  const entry = { reason: 'asked', source: 'outcome', note: null, createdBy: null, createdAt: now, endsAt: null } as const;
  const { written } = await insertNumbers(trx, { ...entry, owner, numbers, call: { campaignId: call.campaign_id, contactId } }, now);
  if (written > 0) await recordAudit(trx, event);
  return 'listed';
}

/** Finds a call that was handed off, by its contact ID alone. The condition on the hand-off is needed to use the index. */
function handedOff(on: Knex, contactId: string) {
  return on('calls').where({ contact_id: contactId }).whereNotNull('handoff');
}

/** Cancels a call whose key was revoked during the hand-off, if the provider hasn't accepted it. Until then, revoking can't cancel it. */
async function cancelIfRevoked(lane: Lane, trx: Knex.Transaction, { campaignId, contactId }: ClaimedCall): Promise<void> {
  const keyId = trx('calls').where({ campaign_id: campaignId, contact_id: contactId }).select('api_key_id');
  const key = await trx('revoked_api_keys').whereIn('id', keyId).whereNotNull('cancelling_since').first('cancelling_since');
  if (key?.cancelling_since != null) await cancelFound(lane, [[campaignId, contactId]], { at: key.cancelling_since, locked: 'wait' }, trx);
}

type Ending = Extract<Settlement, { endedAt: Millis }>;

function toColumns(settlement: Exclude<Settlement, Ending>): Partial<CallRow> {
  const { to: handoff, dueAt: due_at } = settlement;
  if ('dialedAt' in settlement) return { handoff, dialed_at: settlement.dialedAt, due_at, detail: null };
  return { handoff, due_at, ...(settlement.detail === undefined ? {} : { detail: settlement.detail }) };
}
