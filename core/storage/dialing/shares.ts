import { setTimeout } from 'node:timers/promises';
import type { Millis } from '../../domain/instant.ts';
import type { ClaimedCall } from '../../domain/model.ts';
import type { Database } from '../engine/database.ts';
import { shardsOf } from '../engine/shards.ts';
import type { KnownRules } from '../protection/known-rules.ts';
import { accountsWithDue, type Claim, claimCalls, judgeCalls, moveStopped, type OnStopped, pick } from './claims.ts';
import { keyTurns } from './key-turns.ts';
import { type CallKeyPair, lapseBatch, sweepBatchSize } from './queue-changes.ts';

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
export function dueAccounts(database: Database) {
  const unanswered = new Set<Database>();
  let lastAccount = '';
  /** How many turns each account with due calls in several shards has had. */
  const turns = new Map<string, number>();

  /** Queries with a reader, because an idle dialer must not take the writer's lock every second. */
  function find(shard: Database, now: Millis, limit: number): Promise<string[]> {
    if (!shard.isShard) return accountsWithDue(shard, lastAccount, now, limit);
    // A shard whose node hangs must not keep the others' calls from being dialed.
    if (unanswered.has(shard)) return Promise.resolve([]);
    unanswered.add(shard);
    const finding = accountsWithDue(shard, lastAccount, now, limit).finally(() => unanswered.delete(shard));
    return Promise.race([finding, setTimeout<string[]>(patience, [], { ref: false })]);
  }

  return async (limit: number, now: Millis): Promise<{ shares: Map<Database, Share>; failures: PromiseRejectedResult[] }> => {
    const max = Math.min(limit, accountsPerClaim);
    const shards = shardsOf(database);
    const found = await Promise.allSettled(shards.map((shard) => find(shard, now, max)));
    const shardsByAccount = new Map<string, Database[]>();
    for (const [n, shard] of shards.entries()) {
      const result = found[n];
      for (const account of result?.status === 'fulfilled' ? result.value : [])
        shardsByAccount.set(account, [...(shardsByAccount.get(account) ?? []), shard]);
    }
    const accounts = [...shardsByAccount.keys()].sort((a, b) => order(a, b, lastAccount)).slice(0, max);
    lastAccount = accounts.at(-1) ?? lastAccount;
    if (turns.size > maxTurns) turns.clear();
    const shares = new Map<Database, Share>();
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
export function claimer(database: Database, rules: KnownRules, onStopped: OnStopped) {
  const turns = keyTurns(database);

  /** @returns the claimed calls, and how many calls it ended or postponed instead */
  function claimOnce(accounts: Share['accounts'], limit: number, size: number, claim: Claim, others: ReadonlyMap<string, CallKeyPair[]>) {
    return database.write.transaction(async (trx) => {
      await lapseBatch(trx, claim.now, sweepBatchSize);
      const picked = await pick(trx, accounts, { now: claim.now, size, turns, others });
      const judged = await judgeCalls(trx, rules, picked.slice(0, size), claim.now);
      const { claimed, blocked } = await claimCalls(database, trx, judged.open.slice(0, limit), claim);
      if (blocked > 0) onStopped('do-not-call', blocked);
      return { claimed, moved: blocked + (await moveStopped(trx, judged, claim.now, onStopped)) };
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
