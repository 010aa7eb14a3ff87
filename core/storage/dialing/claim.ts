import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { HeldFor, Pace } from '#contract/protection/dialing.ts';
import { claimWithoutAttempt, maxClaim } from '../../domain/calls/call-states.ts';
import { dialingLimits, latestDialing } from '../../domain/calls/dialing.ts';
import { instant, type Millis, oneHour, plus } from '../../domain/instant.ts';
import type { CallCampaign, CampaignRules, ClaimedCall, Clock, DepartureTime, Objection, ScopePace } from '../../domain/ports.ts';
import { describeObjection, doNotCallDetail, firstAllowed, judge, toStopReason } from '../../domain/protection/judge.ts';
import { callLanes } from '../engine/call-lanes.ts';
import { type Lane, readSql, required, type Value } from '../engine/database.ts';
import type { CallRow } from '../engine/tables.ts';
import type { CurrentRules, KnownRules } from '../protection/known.ts';
import {
  type CallKeyPair,
  callKey,
  cancelFound,
  countLive,
  dialingSql,
  endUndialed,
  holdCalls,
  isAt,
  isListed,
  isUndialed,
  lapseBatch,
  lapsesAt,
  type OnStopped,
  queueSql,
  type StoredColumn,
  storedCall,
  sweepBatchSize,
  toKeyPair,
  unlocked,
} from '../queue/queue.ts';
import { type Contact, contactKey, isDecided, readContacts } from './contact-limits.ts';
import { claimAhead, isPacedBy, keepPace, latestNextOfAll, lockScopes, type PaceRow, paceClock, paceTimeSql, spread } from './pace.ts';

/** The number of accounts that one claim considers. The next claim starts with the accounts after them. */
const accountsPerClaim = 100;
/** The maximum number of transactions in one claim. Each may postpone or end `sweepBatchSize` calls, to reach the ones behind them. */
const maxRounds = 20;
/** In ms: how long a claim waits for lanes that don't respond. */
const patience = 1_000;

/**
 * The part of a claim that a lane gets: how many calls, and how many of each account in each turn. `stopped` are accounts of which only calls
 * that a provider has are claimed, because their outcomes don't wait for a stop to end. `paced` are accounts whose calls may wait for their
 * pace.
 */
type Share = { accounts: Map<string, number>; limit: number; stopped: ReadonlySet<string>; paced: ReadonlySet<string> };
type DueAccount = { account_id: string; is_stopped: number | boolean; is_paced: number | boolean };
/** The number of accounts for which the process remembers which lane has the next turn. */
const maxTurns = 10_000;

/** Finds the next accounts with due calls in all lanes, and divides a claim evenly, no matter how many lanes have calls of an account. */
export function dueAccounts(database: Lane, clock: Clock) {
  const unanswered = new Set<Lane>();
  let lastAccount = '';
  let accountsOfClaim: string[] = [];
  /** How many turns each account with due calls in several lanes has had. */
  const turns = new Map<string, number>();

  /** Queries with a reader, because an idle dialer must not take the writer's lock every second. */
  function find(lane: Lane, now: Millis, limit: number): Promise<DueAccount[]> {
    const find = () => accountsWithDue(lane, lastAccount, now, limit, paceTimeSql(lane, clock));
    if (!lane.hasOnlyCalls) return find();
    // A lane whose node hangs must not keep the others' calls from being dialed.
    if (unanswered.has(lane)) return Promise.resolve([]);
    unanswered.add(lane);
    const finding = find().finally(() => unanswered.delete(lane));
    return Promise.race([finding, setTimeout<DueAccount[]>(patience, [], { ref: false })]);
  }

  async function findDue(limit: number, now: Millis): Promise<{ shares: Map<Lane, Share>; failures: PromiseRejectedResult[] }> {
    const max = Math.min(limit, accountsPerClaim);
    const lanes = callLanes(database);
    const found = await Promise.allSettled(lanes.map((lane) => find(lane, now, max)));
    const lanesByAccount = new Map<string, Lane[]>();
    const stopped = new Set<string>();
    const paced = new Set<string>();
    for (const [n, lane] of lanes.entries()) {
      const result = found[n];
      for (const { account_id: account, is_stopped, is_paced } of result?.status === 'fulfilled' ? result.value : []) {
        lanesByAccount.set(account, [...(lanesByAccount.get(account) ?? []), lane]);
        if (is_stopped) stopped.add(account);
        if (is_paced) paced.add(account);
      }
    }
    const accounts = [...lanesByAccount.keys()].sort((a, b) => order(a, b, lastAccount)).slice(0, max);
    accountsOfClaim = accounts;
    lastAccount = accounts.at(-1) ?? lastAccount;
    if (turns.size > maxTurns) turns.clear();
    const shares = new Map<Lane, Share>();
    for (let slot = 0; accounts.length > 0 && slot < limit; slot++) {
      const account = accounts[slot % accounts.length] ?? '';
      const own = lanesByAccount.get(account) ?? [];
      const turn = turns.get(account) ?? 0;
      if (own.length > 1) turns.set(account, turn + 1);
      const lane = own[turn % own.length] ?? database;
      const share = shares.get(lane) ?? { accounts: new Map(), limit: 0, stopped, paced };
      // An account that also has calls in other lanes gets fewer in this one.
      share.accounts.set(account, lane.hasOnlyCalls ? (share.accounts.get(account) ?? 0) + 1 : 1);
      share.limit++;
      shares.set(lane, share);
    }
    return { shares, failures: found.filter((result) => result.status === 'rejected') };
  }

  return {
    findDue,
    /**
     * Starts the next claim after the last of the accounts whose calls were claimed. A pace may have let only one call leave, and then the
     * accounts after it haven't had their turn.
     */
    goOnAfter(claimed: readonly ClaimedCall[]): void {
      const served = new Set(claimed.map(({ campaign }) => campaign.account.id));
      lastAccount = accountsOfClaim.findLast((account) => served.has(account)) ?? lastAccount;
    },
  };
}

/** Orders accounts by ID, starting after the last one. */
function order(a: string, b: string, last: string): number {
  const [aIsAfter, bIsAfter] = [a > last, b > last];
  if (aIsAfter !== bIsAfter) return aIsAfter ? -1 : 1;
  return a < b ? -1 : 1;
}

/** Returns a function that claims the calls of a {@link Share} in one lane. */
export function claimer(root: Lane, database: Lane, clock: Clock, rules: KnownRules, onStopped: OnStopped) {
  const turns = keyTurns(database);
  const claimCalls = claimStatement(database);
  const time = paceClock(database, clock);

  /** @returns the claimed calls, and how many calls it ended or postponed instead */
  function claimOnce(share: Share, limit: number, size: number, claim: Claim, others: ReadonlyMap<string, CallKeyPair[]>) {
    return database.write.transaction(async (trx) => {
      // Counted once no lock is needed anymore, because this transaction would be rolled back for that and repeated.
      const lapsed: Parameters<OnStopped>[] = [];
      await lapseBatch(database, claim.now, sweepBatchSize, (...each) => lapsed.push(each), trx);
      const picked = await pick(database, trx, share, { now: claim.now, size, turns, others });
      const judged = await judgeCalls({ root, lane: database, trx }, rules, picked, claim);
      const paced = await pace(trx, judged, limit, claim);
      const { claimed, blocked } = await claimCalls(trx, paced.open, judged.campaigns, claim);
      await paced.save(trx);
      if (blocked > 0) onStopped('do-not-call', blocked);
      for (const each of lapsed) onStopped(...each);
      return { claimed, pacedAt: paced.at, moved: blocked + (await moveStopped(database, trx, judged, claim.now, onStopped)) };
    });
  }

  /** Picks the calls that may leave now, and holds those that only wait for their campaign's pace. */
  async function pace(trx: Knex.Transaction, judged: JudgedCalls, limit: number, { now, lateness = 0 }: Claim) {
    if (judged.open.every(({ paces }) => paces.length === 0))
      return { open: judged.open.slice(0, limit), save: async () => undefined, at: null };
    const at = { ...(await time.read(trx)), lateness };
    const kept = await keepPace(judged.open, limit, judged.scopes, at, (scope, max) => countLiveIn(trx, scope, max));
    for (const [pace, over] of Map.groupBy(kept.over, (each) => each.pace)) {
      const [first] = over;
      const waiting = over.filter(({ call }) => !call.isLive);
      if (pace.campaignId === null || !first || waiting.length === 0) continue;
      const known = judged.scopes.get(pace.scopeId)?.spread_until ?? instant(0);
      const times = await spread(trx, pace, { first: plus(now, Math.ceil(first.inMs)), count: waiting.length, known });
      for (const [n, { call }] of waiting.entries()) holdOrLapse(judged, call, times[n] ?? now, 'pace');
    }
    return { open: kept.open.map(({ call, leaves }) => ({ ...call, leaves })), save: kept.save, at };
  }

  /** Counts the live calls of all lanes. Its own lane is read in the transaction. */
  async function countLiveIn(trx: Knex.Transaction, scope: ScopePace, max: number): Promise<number> {
    const counts = callLanes(root).map((lane) => countLive(lane, isPacedBy(scope), { max, on: lane === database ? trx : undefined }));
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  /** @returns null if the claim needs a lock that it may not take */
  return async (share: Share, claim: Claim): Promise<ClaimedCall[] | null> => {
    const { accounts, limit } = share;
    const others = await turns.findOthers([...accounts.keys()], claim.now, Math.ceil(limit / accounts.size));
    const all: ClaimedCall[] = [];
    // Repeat if calls were ended or postponed instead of claimed, because even thousands of calls outside their calling hours must not keep
    // the calls behind them from being dialed.
    for (let round = 0, size = limit; round < maxRounds && all.length < limit; round++, size = sweepBatchSize) {
      try {
        const { claimed, moved, pacedAt } = await claimOnce(share, limit - all.length, size, claim, others);
        if (pacedAt) time.noteEnd(pacedAt);
        all.push(...claimed);
        if (moved === 0) break;
      } catch (error) {
        if (error instanceof LockNeeded && all.length === 0) return null;
        // Calls of an earlier round were claimed, so they must be dialed. If the failure lasts, the next claim reports it.
        if (all.length === 0) throw error;
        break;
      }
    }
    return all;
  };
}

type Claim = { provider: string; now: Millis; leaseUntil: Millis; serverPace?: Pace | null; lateness?: number; mayLock: boolean };

/** Rolls a claim back, before it has changed anything that lasts. */
class LockNeeded extends Error {}

/**
 * Finds the next accounts with due calls: first those after a given account, then those from the start. Skips accounts that are stopped,
 * unless a provider has a due call of theirs, and those whose next call may only leave later, because thousands of them would keep others
 * waiting. The recursion skips from account to account in the index, because one account may have a million due calls. It's a single
 * statement, because idle dialers run it every second.
 */
function accountsWithDue(database: Lane, after: string, now: Millis, limit: number, timeSql: string): Promise<DueAccount[]> {
  return database.query<DueAccount>(
    `WITH RECURSIVE waiting (account_id, from_start) AS (
       SELECT min(account_id), 0 FROM calls WHERE due_at IS NOT NULL AND account_id > ?
       UNION ALL
       SELECT (SELECT min(calls.account_id) FROM calls WHERE due_at IS NOT NULL AND calls.account_id > coalesce(waiting.account_id, '')),
         CASE WHEN waiting.account_id IS NULL THEN 1 ELSE from_start END
       FROM waiting WHERE from_start = 0 OR waiting.account_id < ?
     )
     SELECT account_id, is_stopped, EXISTS (SELECT 1 FROM dialing_paces WHERE scope_id IN (account_id, '')) AS is_paced FROM (
       SELECT account_id, from_start, EXISTS (SELECT 1 FROM dialing_stops LEFT JOIN accounts ON accounts.id = waiting.account_id
         WHERE scope_id IN (waiting.account_id, accounts.partner_id, '')) AS is_stopped
       FROM waiting
     ) AS waiting
     WHERE account_id IS NOT NULL AND (from_start = 0 OR account_id <= ?)
       AND EXISTS (SELECT 1 FROM calls WHERE calls.account_id = waiting.account_id AND due_at IS NOT NULL AND due_at <= ?)
       AND NOT EXISTS (SELECT 1 FROM dialing_paces WHERE scope_id IN (waiting.account_id, '')
         AND next_at > ${timeSql} + ${claimAhead} AND next_at <= ${timeSql} + ${latestNextOfAll})
       AND (NOT is_stopped OR EXISTS (
         SELECT 1 FROM ${dialingSql(database)} WHERE calls.account_id = waiting.account_id AND ${isAt('taken')} AND due_at <= ?))
     LIMIT ?`,
    [after, after, after, now, now, limit],
  );
}

const pickedColumns = [
  ...(['campaign_id', 'contact_id', 'account_id', 'state', 'handoff', 'phone', 'time_zone', 'not_before', 'not_after'] as const),
  ...(['placed_at', 'api_key_id'] as const),
];
type PickedRow = Pick<CallRow, (typeof pickedColumns)[number]>;

/**
 * Picks about `size` of the oldest due calls of these accounts. Accounts take turns, and so do the keys within an account. Where calls may
 * wait for a pace or for others to end, the calls that a provider may have come first, because a million may be in front of them. These are
 * picked in addition, because they may have to wait for their own campaign's pace.
 *
 * @param others further due calls by account, of keys that have none of the account's oldest calls
 */
async function pick(
  database: Lane,
  trx: Knex.Transaction,
  { accounts, stopped, paced }: Share,
  { now, size, turns, others }: { now: Millis; size: number; turns: KeyTurns; others: ReadonlyMap<string, CallKeyPair[]> },
): Promise<PickedRow[]> {
  const perTurn = [...accounts.values()].reduce((sum, count) => sum + count, 0);
  const rounds = Math.ceil(size / perTurn);
  const queues: { count: number; calls: PickedRow[] }[] = [];
  for (const [account, count] of accounts) {
    const each = count * rounds;
    // Calls of a stopped campaign that a provider may have can't be held, and mustn't keep those behind them waiting.
    const mayBeClaimed = `NOT (${isAt('open', 'doubt')} AND campaign_id IN (SELECT scope_id FROM dialing_stops WHERE scope = 'campaign'))`;
    const [isStopped, isPaced] = [stopped.has(account), paced.has(account)];
    const isLive = isStopped ? isAt('taken') : isAt('open', 'doubt', 'taken');
    const dialed = trx(trx.raw(dialingSql(database)))
      .where('account_id', account)
      .whereRaw(isLive)
      .where('due_at', '<=', now)
      .whereRaw(mayBeClaimed);
    const live: PickedRow[] = isStopped || isPaced ? await unlocked(trx, dialed.orderBy('due_at').limit(each)).select(pickedColumns) : [];
    if (isStopped) {
      queues.push({ count, calls: live });
      continue;
    }
    const due = () =>
      trx('calls')
        .where('account_id', account)
        .whereNotNull('due_at')
        .where('due_at', '<=', now)
        // Exclude calls that should have lapsed. There may have been too many to end all of them first.
        .where((inTime) => inTime.whereRaw(`NOT ${isUndialed}`).orWhereRaw(`${lapsesAt} >= ?`, [now]))
        .whereRaw(isPaced ? `NOT (${isLive})` : mayBeClaimed);
    const front: PickedRow[] = await unlocked(trx, due().orderBy('due_at').limit(each)).select(pickedColumns);
    const keys = others.get(account) ?? [];
    const behind: PickedRow[] = keys.length === 0 ? [] : await unlocked(trx, due().whereIn(callKey, keys)).select(pickedColumns);
    const positions = new Map(keys.map(([, contactId], index) => [contactId, index]));
    behind.sort((a, b) => (positions.get(a.contact_id) ?? 0) - (positions.get(b.contact_id) ?? 0));
    queues.push({ count, calls: [...live, ...turns.takeTurns(account, front, behind, front.length === each).slice(0, each)] });
  }
  return Array.from({ length: 2 * rounds }, (_, n) => queues.flatMap(({ count, calls }) => calls.slice(n * count, (n + 1) * count))).flat();
}

/**
 * A call to claim.
 *
 * @property stopped why the call must not be handed off, although the provider may already have it; null if it may be
 * @property leaves the call's moment within its paces; null if it may leave right away
 * @property paces those that its hand-off counts for; empty if it won't be handed off
 * @property isLive whether a provider may already have it. If not, it can still wait
 * @property waitsUntil how long it can wait for a stop or its pace; null if `notAfter` decides
 */
type OpenCall = {
  key: CallKeyPair;
  stopped: string | null;
  leaves: DepartureTime | null;
  paces: readonly ScopePace[];
  isLive: boolean;
  waitsUntil: Millis | null;
};

/** The rules' verdict on the selected calls. */
type JudgedCalls = {
  open: OpenCall[];
  held: Map<string, { until: Millis; heldFor: HeldFor | null; calls: CallKeyPair[] }>;
  refused: { objection: Objection; key: CallKeyPair }[];
  cancelled: CallKeyPair[];
  campaigns: CurrentRules['campaigns'];
  /** The locked scopes with a pace or contact limits. */
  scopes: ReadonlyMap<string, PaceRow>;
};

function hold({ held }: JudgedCalls, key: CallKeyPair, until: Millis, heldFor: HeldFor | null): void {
  const name = `${until} ${heldFor}`;
  const group = held.get(name) ?? { until, heldFor, calls: [] };
  group.calls.push(key);
  held.set(name, group);
}

/** Lets a call wait for a stop or its pace, but not for longer than {@link waitsUntil}. */
function holdOrLapse(judged: JudgedCalls, { key, waitsUntil }: Pick<OpenCall, 'key' | 'waitsUntil'>, until: Millis, kind: 'stop' | 'pace') {
  if (waitsUntil !== null && until > waitsUntil) judged.refused.push({ objection: { kind }, key });
  else hold(judged, key, until, kind);
}

/** A call that waits for a stop or its pace becomes due again and again, so that its due time doesn't tell how long it has waited. */
function waitsUntil({ placed_at, not_before, not_after }: PickedRow): Millis | null {
  return not_after === null ? latestDialing({ placedAt: placed_at, notBefore: not_before, notAfter: null }) : null;
}

/**
 * Checks calls against the current rules, which may have changed since they were placed, and against stops. The transaction has already
 * locked the calls, so it sees every change that was acknowledged before.
 */
async function judgeCalls(
  { root, lane, trx }: { root: Lane; lane: Lane; trx: Knex.Transaction },
  rules: KnownRules,
  rows: readonly PickedRow[],
  { now, serverPace = null, mayLock }: Pick<Claim, 'now' | 'serverPace' | 'mayLock'>,
): Promise<JudgedCalls> {
  const { rulesFor, campaigns, hasStops, hasCallsLeft } = await rules.current(rows, trx);
  const stopped = new Set<string>(hasStops ? await trx('dialing_stops').pluck('scope_id') : []);
  const revoked = hasCallsLeft ? await findRevoked(lane, trx, rows) : new Set<string>();
  const forServer = serverPace === null ? [] : [{ ...serverPace, scopeId: '', accountId: null, campaignId: null }];
  const pacesOf = (row: PickedRow) => (row.handoff === 'taken' ? [] : [...forServer, ...rulesFor(row.campaign_id).paces]);
  const contacts = rows.flatMap((row) => toContact(row, rulesFor(row.campaign_id)) ?? []);
  const shared = [
    ...rows.flatMap((row) => pacesOf(row).map(({ scopeId }) => scopeId)),
    ...contacts.map(({ limits: { counts } }) => counts.accountId ?? counts.partnerId),
  ];
  if (shared.length > 0 && !mayLock) throw new LockNeeded();
  const scopes = await lockScopes(trx, lane, shared);
  const times = await readContacts(root, contacts, now, { lane, trx });
  const judged: JudgedCalls = { open: [], held: new Map(), refused: [], cancelled: [], campaigns, scopes };
  for (const row of rows) {
    const key = toKeyPair(row);
    const isLive = mayBeTaken(row);
    const open = { key, leaves: null, isLive, waitsUntil: waitsUntil(row) };
    // If a provider already has the call, there's nothing left to decide, because the claim only asks for its outcome.
    if (row.handoff === 'taken' || row.phone === null) {
      judged.open.push({ ...open, stopped: null, paces: [] });
      continue;
    }
    if (!isLive && revoked.has(row.api_key_id)) {
      judged.cancelled.push(key);
      continue;
    }
    const campaign = campaigns.get(row.campaign_id);
    // Someone is deleting the campaign, which fails because of this call.
    if (campaign === undefined) continue;
    if (['', campaign.partner.id, campaign.account.id].some((id) => stopped.has(id))) continue;
    if (stopped.has(row.campaign_id)) {
      // Resuming makes it due before that.
      if (!isLive) holdOrLapse(judged, open, plus(now, oneHour), 'stop');
      continue;
    }
    const judgement = judgeNow(row, rulesFor(row.campaign_id), times, now);
    if (judgement.kind === 'undecided') continue;
    if (judgement.kind === 'open') judged.open.push({ ...open, stopped: null, paces: pacesOf(row) });
    else if (isLive)
      judged.open.push({ ...open, stopped: judgement.kind === 'held' ? closedNow : describeObjection(judgement), paces: [] });
    else if (judgement.kind === 'held') hold(judged, key, judgement.until, judgement.heldFor);
    else judged.refused.push({ objection: judgement, key });
  }
  return judged;
}

/** Returns these calls' keys that were revoked, or whose creator was deleted, while some of their calls haven't been cancelled yet. */
async function findRevoked(lane: Lane, trx: Knex.Transaction, rows: readonly PickedRow[]): Promise<Set<string>> {
  const keyIds = [...new Set(rows.map((row) => row.api_key_id))];
  const among = `id IN (${keyIds.map(() => '?')})`;
  const marked = `SELECT id FROM revoked_api_keys WHERE cancelling_since IS NOT NULL AND ${among}
    UNION ALL SELECT k.id FROM api_keys k JOIN users u ON u.id = k.creator_id
    WHERE u.deleted_at IS NOT NULL AND u.cancelling_since IS NOT NULL AND k.${among}`;
  return new Set((await lane.query<{ id: string }>(marked, [...keyIds, ...keyIds], trx)).map(({ id }) => id));
}

/** Whether a provider may already have the call. */
function mayBeTaken({ state, handoff }: Pick<PickedRow, 'state' | 'handoff'>): boolean {
  return state !== 'queued' && handoff !== 'retry';
}

type Verdict = { kind: 'open' } | { kind: 'undecided' } | { kind: 'held'; until: Millis; heldFor: HeldFor | null } | Objection;

/** Applies the rules about numbers, calling hours and contact limits to a call. @param contacts see {@link readContacts} */
function judgeNow(row: PickedRow, rules: CampaignRules, contacts: Map<string, Millis[]>, now: Millis): Verdict {
  const call = { phone: row.phone ?? '', timeZone: row.time_zone, notBefore: null, notAfter: row.not_after };
  const placedAt = row.not_before !== null && row.not_before > row.placed_at ? row.not_before : row.placed_at;
  const judgement = judge(rules, call, now, placedAt);
  if (judgement.kind === 'held') return { ...judgement, heldFor: null };
  const contact = toContact(row, rules);
  if (judgement.kind !== 'open' || contact === null) return judgement;
  const times = contacts.get(contactKey(contact)) ?? [];
  const until = firstAllowed(contact.limits.limits, times, now);
  if (until <= now) {
    // Another call to the same number in this claim has to wait for this one.
    contacts.set(contactKey(contact), [now, ...times]);
    return judgement;
  }
  const latest = latestDialing({ placedAt, notBefore: null, notAfter: row.not_after });
  // Even if it can't leave in time, it can be cancelled until then, or the rules may change. Right after `notAfter`, the next claim lapses it.
  const lapsesAt = row.not_after === null ? latest : plus(row.not_after, 1);
  // The calls in the way may not count after all, because the provider may refuse them, or because this claim may not take them.
  if (lapsesAt > now && firstAllowed(contact.limits.limits, times.filter(isDecided(now)), now) < until) {
    const decidedAt = plus(now, dialingLimits.answer.toMillis());
    return decidedAt < lapsesAt ? { kind: 'held', until: decidedAt, heldFor: 'contact-limit' } : { kind: 'undecided' };
  }
  const later = until < latest ? judge(rules, { ...call, notBefore: until }, now, placedAt) : null;
  if (later?.kind === 'open' || later?.kind === 'held')
    return { kind: 'held', until: later.kind === 'held' ? later.until : until, heldFor: 'contact-limit' };
  return lapsesAt > now ? { kind: 'held', until: lapsesAt, heldFor: 'contact-limit' } : { kind: 'contact-limit' };
}

/** @returns null if contact limits don't apply to the call */
function toContact(row: PickedRow, { contactLimits }: CampaignRules): Contact | null {
  return contactLimits === null || row.phone === null || mayBeTaken(row) ? null : { limits: contactLimits, phone: row.phone };
}

const closedNow = 'Calling hours have ended.';

/** Postpones or ends the calls that must not be dialed now. @returns the number of calls */
async function moveStopped(
  database: Lane,
  trx: Knex.Transaction,
  { held, refused, cancelled }: JudgedCalls,
  now: Millis,
  onStopped: OnStopped,
): Promise<number> {
  let moved = cancelled.length === 0 ? 0 : await cancelFound(database, cancelled, { at: now, locked: 'skip' }, trx);
  for (const { until, heldFor, calls } of held.values()) moved += await holdCalls(database, trx, calls, until, heldFor);
  for (const { objection, key } of refused) {
    const detail = describeObjection(objection);
    const state = toStopReason(objection) === 'number' ? 'blocked' : 'lapsed';
    const ended = await endUndialed(database, trx, [key], now, { state, detail });
    if (ended > 0) onStopped(toStopReason(objection), ended);
    moved += ended;
  }
  return moved;
}

/** The columns that claim.sql returns. */
type ClaimedRow = Pick<CallRow, StoredColumn | 'attempt' | 'handoff' | 'first_attempt_at' | 'provider'> & { is_listed: Value | boolean };

/** Returns a function that claims calls, and blocks those to numbers on a list. */
function claimStatement(database: Lane) {
  const claim = database.prepare<ClaimedRow>(
    readSql(import.meta.url, 'claim', database.kind, {
      isListed: isListed('CAST({{given}}->>2 AS bigint)'),
      claimWithoutAttempt: String(claimWithoutAttempt),
      maxClaim: String(maxClaim),
    }),
    'write',
  );
  return async (
    trx: Knex.Transaction,
    open: readonly OpenCall[],
    campaigns: CurrentRules['campaigns'],
    { provider, now, leaseUntil }: Claim,
  ): Promise<{ claimed: ClaimedCall[]; blocked: number }> => {
    if (open.length === 0) return { claimed: [], blocked: 0 };
    const keys = open.map(({ key }) => key);
    const claimedAt = performance.now();
    const { rows } = await claim([keys, provider, now, leaseUntil], undefined, trx);
    const opened = new Map(open.map((call) => [call.key[1], call]));
    const claimed = rows.map((row) => {
      const { handoff, attempt } = row;
      if (handoff === null || handoff === 'retry')
        throw new Error(`The call ${row.contact_id} was claimed, but its hand-off is ${handoff}.`);
      const { stopped = null, leaves = null } = opened.get(row.contact_id) ?? {};
      return {
        ...storedCall(row),
        campaign: campaigns.get(row.campaign_id) ?? nameless(row.campaign_id),
        firstAttemptAt: required(row.first_attempt_at, 'first_attempt_at'),
        provider: required(row.provider, 'provider'),
        attempt,
        handoff,
        claimedAt,
        leaseUntil,
        leaves,
        stopped: row.is_listed ? doNotCallDetail : stopped,
      };
    });
    if (claimed.length === keys.length) return { claimed, blocked: 0 };
    const done = new Set(rows.map((row) => row.contact_id));
    const left = keys.filter(([, contactId]) => !done.has(contactId));
    return { claimed, blocked: await blockIfListed(database, trx, left, now) };
  };
}

/** Blocks the calls whose numbers are on a list. @returns the number of blocked calls */
export function blockIfListed(database: Lane, trx: Knex.Transaction, calls: readonly CallKeyPair[], now: Millis): Promise<number> {
  return endUndialed(database, trx, calls, now, { state: 'blocked', detail: doNotCallDetail, ifListed: true });
}

/** Stands for a campaign that can't be read, for a call that won't be handed off. */
function nameless(id: string): CallCampaign {
  const none = { id: '', name: '' };
  return { id, name: '', settings: {}, account: none, partner: none };
}

/** The columns of the queue's index after the account. */
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
/** An account with a long queue. @property scanned how far it has been searched for keys that aren't in front */
type Account = { front: ReadonlySet<string>; scanned: Position; keys: Map<string, Stretch>; isTurnOfOthers: boolean };

type KeyTurns = ReturnType<typeof keyTurns>;

/**
 * Lets the keys of an account take turns, even if one of them has a million calls in front of the others. The queue has no index by key
 * (see core/docs/decisions/one-index-for-the-queue.md), so each claim searches the next stretch of the queue for calls of other keys, and
 * remembers where they are. What it remembers is only a hint: the claim itself checks each call.
 */
function keyTurns(database: Lane) {
  const accounts = new Map<string, Account>();
  const part = `FROM ${queueSql(database)} WHERE account_id = ? AND due_at IS NOT NULL AND due_at <= ? AND (${position}) > (?, ?, ?, ?)`;

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
    return rows.map(toKeyPair);
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
