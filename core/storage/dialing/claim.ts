import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { ClaimedCall, Objection, StopReason } from '../../domain/model.ts';
import { describeObjection, doNotCallDetail, judge, toStopReason } from '../../domain/protection/judge.ts';
import type { Lane, Value } from '../engine/database.ts';
import { required } from '../engine/database.ts';
import { shardsOf } from '../engine/shards.ts';
import { readSql } from '../engine/sql-file.ts';
import type { CallRow } from '../engine/tables.ts';
import type { KnownRules } from '../protection/rules.ts';
import { callKey, isUndialed } from '../queue/call-stages.ts';
import { type CallKeyPair, holdCalls, lapseBatch, lapsesAt, stopCalls, sweepBatchSize, unlocked } from '../queue/queue.ts';

/** The number of accounts that one claim considers. The next claim starts with the accounts after them. */
const accountsPerClaim = 100;
/**
 * The maximum number of transactions in one claim. Each postpones or ends up to `sweepBatchSize` calls that can't be dialed now, to reach
 * the ones behind them.
 */
const maxRounds = 20;
/** In ms: how long a claim waits for shards that don't respond. */
const patience = 1_000;

/** The part of a claim that a shard gets: how many calls in total, and in what proportion from which accounts. */
type Share = { accounts: Map<string, number>; limit: number };
/** The number of accounts for which the process remembers which shard has the next turn. */
const maxTurns = 10_000;

/**
 * Returns a function that finds the next accounts with due calls in all shards, and divides a claim among them. Each account gets the same
 * number of calls, no matter how many shards have calls of it.
 */
export function dueAccounts(database: Lane) {
  const unanswered = new Set<Lane>();
  let lastAccount = '';
  /** How many turns each account with due calls in several shards has had. */
  const turns = new Map<string, number>();

  /** Queries with a reader, because an idle dialer must not take the writer's lock every second. */
  function find(shard: Lane, now: Millis, limit: number): Promise<string[]> {
    if (!shard.isShard) return accountsWithDue(shard, lastAccount, now, limit);
    // A shard whose node hangs must not keep the others' calls from being dialed.
    if (unanswered.has(shard)) return Promise.resolve([]);
    unanswered.add(shard);
    const finding = accountsWithDue(shard, lastAccount, now, limit).finally(() => unanswered.delete(shard));
    return Promise.race([finding, setTimeout<string[]>(patience, [], { ref: false })]);
  }

  return async (limit: number, now: Millis): Promise<{ shares: Map<Lane, Share>; failures: PromiseRejectedResult[] }> => {
    const max = Math.min(limit, accountsPerClaim);
    const shards = shardsOf(database);
    const found = await Promise.allSettled(shards.map((shard) => find(shard, now, max)));
    const shardsByAccount = new Map<string, Lane[]>();
    for (const [n, shard] of shards.entries()) {
      const result = found[n];
      for (const account of result?.status === 'fulfilled' ? result.value : [])
        shardsByAccount.set(account, [...(shardsByAccount.get(account) ?? []), shard]);
    }
    const accounts = [...shardsByAccount.keys()].sort((a, b) => order(a, b, lastAccount)).slice(0, max);
    lastAccount = accounts.at(-1) ?? lastAccount;
    if (turns.size > maxTurns) turns.clear();
    const shares = new Map<Lane, Share>();
    for (let slot = 0; accounts.length > 0 && slot < limit; slot++) {
      const account = accounts[slot % accounts.length] ?? '';
      const own = shardsByAccount.get(account) ?? [];
      const turn = turns.get(account) ?? 0;
      if (own.length > 1) turns.set(account, turn + 1);
      const shard = own[turn % own.length] ?? database;
      const share = shares.get(shard) ?? { accounts: new Map(), limit: 0 };
      // In each turn, the account gets as many calls as it has slots in this shard. An account that also has calls in other shards has
      // fewer.
      share.accounts.set(account, shard.isShard ? (share.accounts.get(account) ?? 0) + 1 : 1);
      share.limit++;
      shares.set(shard, share);
    }
    return { shares, failures: found.filter((result) => result.status === 'rejected') };
  };
}

/** Orders accounts by ID, starting after the last one. */
function order(a: string, b: string, last: string): number {
  const [aIsAfter, bIsAfter] = [a > last, b > last];
  if (aIsAfter !== bIsAfter) return aIsAfter ? -1 : 1;
  return a < b ? -1 : 1;
}

/** Returns a function that claims the calls of a {@link Share} in one shard. */
export function claimer(database: Lane, rules: KnownRules, onStopped: OnStopped) {
  const turns = keyTurns(database);
  const claimCalls = claimStatement(database);

  /** @returns the claimed calls, and how many calls it ended or postponed instead */
  function claimOnce(accounts: Share['accounts'], limit: number, size: number, claim: Claim, others: ReadonlyMap<string, CallKeyPair[]>) {
    return database.write.transaction(async (trx) => {
      await lapseBatch(database, claim.now, sweepBatchSize, trx);
      const picked = await pick(trx, accounts, { now: claim.now, size, turns, others });
      const judged = await judgeCalls(trx, rules, picked.slice(0, size), claim.now);
      const { claimed, blocked } = await claimCalls(trx, judged.open.slice(0, limit), claim);
      if (blocked > 0) onStopped('do-not-call', blocked);
      return { claimed, moved: blocked + (await moveStopped(database, trx, judged, claim.now, onStopped)) };
    });
  }

  return async ({ accounts, limit }: Share, claim: Claim): Promise<ClaimedCall[]> => {
    const others = await turns.findOthers([...accounts.keys()], claim.now, Math.ceil(limit / accounts.size));
    const all: ClaimedCall[] = [];
    // Repeat if calls were ended or postponed instead of claimed, because even thousands of calls outside their calling hours must not keep
    // the calls behind them from being dialed.
    for (let round = 0, size = limit; round < maxRounds && all.length < limit; round++, size = sweepBatchSize) {
      try {
        const { claimed, moved } = await claimOnce(accounts, limit - all.length, size, claim, others);
        all.push(...claimed);
        if (moved === 0) break;
      } catch (error) {
        // Calls of an earlier round were claimed, so they must be dialed. If the failure lasts, the next claim reports it.
        if (all.length === 0) throw error;
        break;
      }
    }
    return all;
  };
}

type Claim = { provider: string; now: Millis; leaseUntil: Millis };
export type OnStopped = (reason: StopReason, calls: number) => void;

/**
 * Finds the next accounts with due calls: first those after a given account, then those from the start. The recursion skips from account to
 * account in the index, because one account may have a million due calls. It's a single statement, because idle dialers run it every
 * second.
 */
async function accountsWithDue(database: Lane, after: string, now: Millis, limit: number): Promise<string[]> {
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
async function pick(
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
async function judgeCalls(trx: Knex.Transaction, rules: KnownRules, rows: readonly PickedRow[], now: Millis): Promise<JudgedCalls> {
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
async function moveStopped(
  database: Lane,
  trx: Knex.Transaction,
  { held, refused }: JudgedCalls,
  now: Millis,
  onStopped: OnStopped,
): Promise<number> {
  let moved = 0;
  for (const [until, calls] of held) moved += await holdCalls(database, trx, calls, until);
  for (const { objection, key } of refused) {
    const detail = describeObjection(objection);
    const state = toStopReason(objection) === 'number' ? 'blocked' : 'lapsed';
    const ended = await stopCalls(database, trx, [key], now, { state, detail });
    if (ended > 0) onStopped(toStopReason(objection), ended);
    moved += ended;
  }
  return moved;
}

/** The columns that claim.*.sql returns. */
type ClaimedRow = Pick<
  CallRow,
  | 'contact_id'
  | 'request_id'
  | 'campaign_id'
  | 'phone'
  | 'name'
  | 'time_zone'
  | 'variables'
  | 'placed_at'
  | 'not_before'
  | 'not_after'
  | 'attempt'
  | 'handoff'
  | 'first_attempt_at'
  | 'provider'
> & { is_listed: Value | boolean };

/**
 * Returns a function that claims calls, except those to numbers on a list, which it blocks. It returns the claimed calls, and the number of
 * blocked ones.
 */
function claimStatement(database: Lane) {
  const claim = database.prepare<ClaimedRow>(readSql(import.meta.url, 'claim', database.kind), 'write');
  return async (
    trx: Knex.Transaction,
    open: JudgedCalls['open'],
    { provider, now, leaseUntil }: Claim,
  ): Promise<{ claimed: ClaimedCall[]; blocked: number }> => {
    if (open.length === 0) return { claimed: [], blocked: 0 };
    const keys = open.map(({ key }) => key);
    const { rows } = await claim([keys, provider, now, leaseUntil], undefined, trx);
    const reasons = new Map(open.map(({ key: [, contactId], stopped }) => [contactId, stopped]));
    const claimed = rows.map((row) =>
      claimedCall(row, leaseUntil, row.is_listed ? doNotCallDetail : (reasons.get(row.contact_id) ?? null)),
    );
    if (claimed.length === keys.length) return { claimed, blocked: 0 };
    const done = new Set(rows.map((row) => row.contact_id));
    const left = keys.filter(([, contactId]) => !done.has(contactId));
    return { claimed, blocked: await blockIfListed(database, trx, left, now) };
  };
}

/** Blocks the calls whose numbers are on a list. @returns the number of blocked calls */
export function blockIfListed(database: Lane, trx: Knex.Transaction, calls: readonly CallKeyPair[], now: Millis): Promise<number> {
  return stopCalls(database, trx, calls, now, { state: 'blocked', detail: doNotCallDetail, ifListed: true });
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

/** The columns of the queue's index after the account, in order. */
const position = ['due_at', 'placed_at', 'api_key_id', 'contact_id'] as const;
type Position = readonly [dueAt: number, placedAt: number, apiKeyId: string, contactId: string];
type PositionRow = { due_at: number; placed_at: number; api_key_id: string; contact_id: string };

const start: Position = [0, 0, '', ''];
/** The number of calls in an account's queue that one claim searches. This takes 3 to 5 ms, on a different connection from the claim's. */
const stretchLength = 10_000;
/** The number of keys whose calls one claim adds for an account. */
const maxKeys = 8;

/** A part of an account's queue in which a key has calls. */
type Stretch = { from: Position; to: Position };
/** The known state of an account with a long queue. @property scanned how far it has been searched for other keys */
type Account = { front: ReadonlySet<string>; scanned: Position; keys: Map<string, Stretch>; isTurnOfOthers: boolean };

type KeyTurns = ReturnType<typeof keyTurns>;

/**
 * Lets the keys of an account take turns, even if one of them has a million calls in front of the others. The queue has no index by key
 * (see core/docs/decisions/one-index-of-the-queue.md), so each claim searches the next stretch of the queue for calls of other keys, and
 * remembers where they are. What it remembers is only a hint: the claim itself checks each call.
 */
function keyTurns(database: Lane) {
  const accounts = new Map<string, Account>();
  const queue = database.kind === 'sqlite' ? 'calls INDEXED BY calls_due' : 'calls';
  const part = `FROM ${queue} WHERE account_id = ? AND due_at IS NOT NULL AND due_at <= ? AND (${position}) > (?, ?, ?, ?)`;

  /** Searches the next stretch for keys. After the end of the queue, starts again at its beginning. */
  async function search(id: string, account: Account, now: Millis): Promise<void> {
    const from = account.scanned;
    const bindings = [id, now, ...from];
    const inOrder = `ORDER BY ${position} LIMIT ${stretchLength}`;
    const stretches = await database.query<Omit<PositionRow, 'contact_id'>>(
      `SELECT api_key_id, min(due_at) AS due_at, min(placed_at) AS placed_at
       FROM (SELECT ${position} ${part} ${inOrder}) AS stretch GROUP BY api_key_id`,
      bindings,
    );
    const [last] = await database.query<PositionRow>(
      `SELECT ${position} ${part} ORDER BY ${position} LIMIT 1 OFFSET ${stretchLength - 1}`,
      bindings,
    );
    account.scanned = last ? [last.due_at, last.placed_at, last.api_key_id, last.contact_id] : start;
    const to: Position = last ? account.scanned : [now + 1, 0, '', ''];
    for (const { api_key_id, due_at, placed_at } of stretches) {
      if (!account.front.has(api_key_id) && !account.keys.has(api_key_id))
        account.keys.set(api_key_id, { from: [due_at, placed_at, '', ''], to });
    }
  }

  /** Returns the next calls of a key, and forgets the key if there are no more in its stretch. */
  async function next(id: string, { keys }: Account, key: string, now: Millis, limit: number): Promise<CallKeyPair[]> {
    const stretch = keys.get(key);
    if (!stretch) return [];
    const rows = await database.query<PositionRow & { campaign_id: string }>(
      `SELECT campaign_id, ${position} ${part} AND (${position}) <= (?, ?, ?, ?) AND api_key_id = ? ORDER BY ${position} LIMIT ${limit}`,
      [id, now, ...stretch.from, ...stretch.to, key],
    );
    // Move the key behind all others, so that each key gets its turn.
    keys.delete(key);
    const [first] = rows;
    // There may be more calls, and this claim might not take all of these, so the stretch now begins right before the first one. Claimed
    // calls leave the queue.
    if (first && rows.length === limit) keys.set(key, { ...stretch, from: [first.due_at, first.placed_at, first.api_key_id, ''] });
    return rows.map(({ campaign_id, contact_id }) => [campaign_id, contact_id]);
  }

  return {
    /** Returns calls of keys that aren't in front of these accounts' queues. @param limit per key */
    async findOthers(ids: readonly string[], now: Millis, limit: number): Promise<Map<string, CallKeyPair[]>> {
      const others = new Map<string, CallKeyPair[]>();
      for (const id of ids) {
        const account = accounts.get(id);
        if (!account) continue;
        for (const key of account.front) account.keys.delete(key);
        if (account.keys.size < maxKeys) await search(id, account, now);
        const calls: CallKeyPair[] = [];
        for (const key of [...account.keys.keys()].slice(0, maxKeys)) calls.push(...(await next(id, account, key, now, limit)));
        others.set(id, calls);
        // Move the first key to the end, so that the next claim begins with another one.
        const [first] = account.keys;
        if (first) {
          account.keys.delete(first[0]);
          account.keys.set(...first);
        }
      }
      return others;
    },

    /**
     * Orders the calls of an account so that its keys take turns.
     *
     * @param front the oldest calls @param others calls of other keys @param isLong whether the queue may have more calls than those in
     * `front`
     */
    takeTurns<Call extends { api_key_id: string }>(id: string, front: readonly Call[], others: readonly Call[], isLong: boolean): Call[] {
      const keysInFront = new Set(front.map(({ api_key_id }) => api_key_id));
      const known = accounts.get(id);
      if (!isLong) accounts.delete(id);
      else if (known) known.front = keysInFront;
      else accounts.set(id, { front: keysInFront, scanned: start, keys: new Map(), isTurnOfOthers: true });
      const behind = others.filter(({ api_key_id }) => !keysInFront.has(api_key_id));
      // The keys in front and the keys behind take turns at going first, because a claim may have room for only one call.
      const isTurnOfOthers = known?.isTurnOfOthers ?? false;
      if (known) known.isTurnOfOthers = !isTurnOfOthers;
      const queues = [
        ...Map.groupBy(isTurnOfOthers ? [...behind, ...front] : [...front, ...behind], ({ api_key_id }) => api_key_id).values(),
      ];
      const longest = Math.max(0, ...queues.map(({ length }) => length));
      return Array.from({ length: longest }, (_, turn) => queues.flatMap((calls) => calls.slice(turn, turn + 1))).flat();
    },
  };
}
