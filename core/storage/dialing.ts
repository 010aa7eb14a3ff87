import type { Knex } from 'knex';
import { type ClaimedCall, type DialingStore, dialingLimits, type Settlement } from '../domain/dialing.ts';
import { callKey } from './calls.ts';
import { inShortTransactions } from './chunks.ts';
import type { Database, Row } from './database.ts';

/** Of how many accounts calls are claimed in one go. The next go begins with the accounts after them. */
const accountsAtOnce = 100;
const lapsedAtOnce = 500;

export function dialingStore(database: Database): DialingStore {
  const { read, write } = database;
  let lastAccount = '';

  return {
    async claim(limit, provider, now, leaseUntil) {
      // A look first, on a reader: an idle dialer must not take the writer's lock every second.
      const accounts = await accountsWithDue(read, lastAccount, now, Math.min(limit, accountsAtOnce));
      if (accounts.length === 0) return [];
      lastAccount = accounts.at(-1) ?? '';
      const each = Math.ceil(limit / accounts.length);
      return write.transaction(async (trx) => {
        await lapseSome(trx, now, lapsedAtOnce);
        const picked = await pick(trx, accounts, now, each);
        return picked.length === 0 ? [] : claimPicked(trx, picked.slice(0, limit), provider, now, leaseUntil);
      });
    },

    async settle(call, settlement) {
      // The attempt fences off whoever comes late; the state keeps an outcome that was reported in the meantime.
      const settled = await write('calls')
        .where({ contact_id: call.contactId, attempt: call.attempt, state: 'dialing' })
        .whereNotNull('handoff')
        .update(columnsOf(settlement));
      return settled > 0;
    },

    async reportOutcome(contactId, { state, detail, endedAt, durationSeconds }) {
      const changed = await write('calls')
        .where({ contact_id: contactId, state: 'dialing' })
        .whereNotNull('handoff')
        .update({
          ...{ state, detail, ended_at: endedAt, duration_seconds: durationSeconds, due_at: null, handoff: 'taken' },
          dialed_at: write.raw('coalesce(dialed_at, first_attempt_at)'),
        });
      if (changed > 0) return true;
      const known: unknown = await read('calls').where({ contact_id: contactId }).whereNotNull('handoff').first('contact_id');
      return known !== undefined;
    },

    lapse: (now, signal) => inShortTransactions((limit) => lapseSome(write, now, limit), lapsedAtOnce, signal),

    endForgotten: (now, signal) => inShortTransactions((limit) => endSomeForgotten(write, now, limit), lapsedAtOnce, signal),

    recoverFromClockStep: (now, signal) => inShortTransactions((limit) => makeSomeDue(write, now, limit), lapsedAtOnce, signal),

    async queue(now) {
      const row = await read('calls')
        .whereNotNull('due_at')
        .where('due_at', '<=', now)
        .where((waiting) => waiting.where('state', 'queued').orWhereIn('handoff', ['retry', 'doubt']))
        .count({ due: '*' })
        .min({ oldest: 'due_at' })
        .first<{ due: number | string; oldest: number | null }>();
      return { due: Number(row.due), oldestDueAt: row.oldest };
    },
  };
}

/**
 * The next accounts, after a given one and around, that have due calls. Steps from account to account in the index, since one of them may
 * have a million.
 */
async function accountsWithDue(from: Knex, after: string, now: number, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (const start of [after, '']) {
    const rows = await rowsOf<{ account_id: string }>(
      from,
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
    for (const { account_id } of rows) if (!found.includes(account_id)) found.push(account_id);
    if (found.length >= limit || start === '') break;
  }
  return found.slice(0, limit);
}

const life = dialingLimits.life.toMillis();
/** When a queued call lapses. */
const lapsesAt = `coalesce(not_after, due_at + ${life})`;

/** Calls that nobody has dialed in their time. Retention counts from when that was over, however late it is noticed. */
function lapseSome(on: Knex, now: number, limit: number): Promise<number> {
  const late = on('calls').whereRaw(`state = 'queued'`).whereNotNull('not_after').where('not_after', '<', now);
  const endedAt = on.raw('CASE WHEN not_after > placed_at THEN not_after ELSE placed_at END');
  return updateSome(on, late, limit, { state: 'lapsed', ended_at: endedAt, due_at: null });
}

/** With a dialer, none comes to this: each has its end within hours of being due. */
function endSomeForgotten(on: Knex, now: number, limit: number): Promise<number> {
  const forgotten = on('calls')
    .whereNotNull('due_at')
    .where('due_at', '<', now - life)
    .where((endless) => endless.whereNot('state', 'queued').orWhereNull('not_after'));
  const state = on.raw(`CASE state WHEN 'queued' THEN 'lapsed' ELSE 'unknown' END`);
  return updateSome(on, forgotten, limit, { state, ended_at: on.raw(`due_at + ${life}`), due_at: null });
}

const { clockSkew, lease, outcome } = dialingLimits;

/** A queued call is due when it was placed, or at its `notBefore`; a claim lasts for its lease; nothing else waits longer than an outcome may. */
function makeSomeDue(on: Knex, now: number, limit: number): Promise<number> {
  const latest = now + clockSkew.toMillis();
  const tooFar = on('calls')
    .where('due_at', '>', latest)
    .where((either) =>
      either
        .whereRaw(`(state = 'queued' AND due_at > coalesce(not_before, 0))`)
        .orWhereRaw(`(state = 'dialing' AND handoff = 'open' AND due_at > ?)`, [latest + lease.toMillis()])
        .orWhereRaw(`(state = 'dialing' AND due_at > ?)`, [latest + outcome.toMillis()]),
    );
  const dueAt = on.raw(`CASE WHEN state = 'queued' AND not_before > ? THEN not_before ELSE CAST(? AS bigint) END`, [now, now]);
  return updateSome(on, tooFar, limit, { due_at: dueAt });
}

/** Changes some of the calls that are found, passing over those that another process is busy with. */
async function updateSome(on: Knex, found: Knex.QueryBuilder, limit: number, columns: object): Promise<number> {
  const some = free(on, found.limit(limit)).select(callKey);
  return on('calls')
    .withMaterialized('some', some)
    .whereIn(callKey, on('some').select(callKey))
    .whereIn('state', ['queued', 'dialing'])
    .update(columns);
}

/** The oldest due calls of each account, taking turns. */
async function pick(trx: Knex.Transaction, accounts: string[], now: number, each: number): Promise<CallKey[]> {
  const queues: CallKey[][] = [];
  for (const account of accounts) {
    const due = trx('calls')
      .where('account_id', account)
      .whereNotNull('due_at')
      .where('due_at', '<=', now)
      // Those that have lapsed, and are so many that they are not marked yet.
      .where((inTime) => inTime.whereNot('state', 'queued').orWhereRaw(`${lapsesAt} >= ?`, [now]))
      .orderBy('due_at')
      .limit(each);
    queues.push(await keysOf(trx, due));
  }
  return Array.from({ length: each }, (_, turn) => queues.flatMap((queue) => queue.slice(turn, turn + 1))).flat();
}

type CallKey = [campaignId: string, contactId: string];

/** Passes over rows that another process is busy with. SQLite has one writer, and nobody to pass over. */
function free(on: Knex, calls: Knex.QueryBuilder): Knex.QueryBuilder {
  return on.client.config.client === 'pg' ? calls.forUpdate().skipLocked() : calls;
}

async function keysOf(trx: Knex.Transaction, calls: Knex.QueryBuilder): Promise<CallKey[]> {
  const rows: { campaign_id: string; contact_id: string }[] = await free(trx, calls).select(callKey);
  return rows.map(({ campaign_id, contact_id }) => [campaign_id, contact_id]);
}

async function claimPicked(
  trx: Knex.Transaction,
  picked: CallKey[],
  provider: string,
  now: number,
  leaseUntil: number,
): Promise<ClaimedCall[]> {
  const rows: Row[] = await trx('calls')
    .whereIn(callKey, picked)
    .where('due_at', '<=', now)
    .whereIn('state', ['queued', 'dialing'])
    .update({
      state: 'dialing',
      attempt: trx.raw('attempt + 1'),
      due_at: leaseUntil,
      provider: trx.raw(`CASE WHEN handoff IN ('open', 'doubt', 'taken') THEN provider ELSE ? END`, [provider]),
      first_attempt_at: trx.raw('coalesce(first_attempt_at, ?)', [now]),
      handoff: trx.raw(`CASE WHEN handoff = 'taken' THEN 'taken' WHEN handoff IN ('open', 'doubt') THEN 'doubt' ELSE 'open' END`),
    })
    .returning(claimedColumns);
  return rows.map((row) => claimedCall(row, leaseUntil));
}

const claimedColumns = [
  ...['contact_id', 'request_id', 'campaign_id', 'phone', 'name', 'time_zone', 'variables', 'placed_at', 'not_before', 'not_after'],
  ...['attempt', 'handoff', 'first_attempt_at', 'provider'],
];

function columnsOf(settlement: Settlement) {
  switch (settlement.kind) {
    case 'taken':
      return { handoff: 'taken', dialed_at: settlement.dialedAt, due_at: settlement.dueAt };
    case 'retry':
      return { handoff: settlement.handoff, due_at: settlement.dueAt };
    case 'ended': {
      const { state, detail, endedAt, durationSeconds } = settlement;
      return { state, detail, ended_at: endedAt, duration_seconds: durationSeconds, due_at: null };
    }
  }
}

function claimedCall(row: Row, leaseUntil: number): ClaimedCall {
  const text = (column: string) => (typeof row[column] === 'string' ? row[column] : null);
  const number = (column: string) => (typeof row[column] === 'number' ? row[column] : null);
  const handoff = text('handoff');
  return {
    contactId: text('contact_id') ?? '',
    requestId: text('request_id') ?? '',
    campaignId: text('campaign_id') ?? '',
    phone: text('phone') ?? '',
    name: text('name'),
    timeZone: text('time_zone'),
    variables: Object.fromEntries(JSON.parse(text('variables') ?? '[]')),
    placedAt: number('placed_at') ?? 0,
    notBefore: number('not_before'),
    notAfter: number('not_after'),
    firstAttemptAt: number('first_attempt_at') ?? 0,
    provider: text('provider') ?? '',
    attempt: number('attempt') ?? 0,
    handoff: handoff === 'taken' || handoff === 'doubt' ? handoff : 'open',
    leaseUntil,
  };
}

/** The rows of a raw statement, whichever shape the driver gives them. */
async function rowsOf<Found>(from: Knex, sql: string, bindings: (string | number)[]): Promise<Found[]> {
  const result: unknown = await from.raw(sql, bindings);
  const rows = typeof result === 'object' && result !== null && 'rows' in result ? result.rows : result;
  return rows as Found[];
}
