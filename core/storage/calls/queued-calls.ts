import { setTimeout } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import { inChunks } from '../engine/chunks.ts';
import type { Database, Value } from '../engine/database.ts';
import { inEachShard, sumOfShards } from '../engine/shards.ts';
import { readSql } from '../engine/sql-file.ts';
import type { CallRow } from '../engine/tables.ts';
import { isAt, isUndialed } from './call-stages.ts';

/*
 * To find a key's queued calls, the core scans the queue's whole index, because another index by key would make every placed call too
 * expensive (core/docs/decisions/one-index-of-the-queue.md). The queue's index contains the key, so only matching rows are looked up in the
 * table.
 */

/** The columns of the index, in order. The last one distinguishes calls that were placed and are due at the same time. */
const position = ['account_id', 'due_at', 'placed_at', 'api_key_id', 'contact_id'] as const;
type Found = Pick<CallRow, (typeof position)[number] | 'campaign_id'>;

/** Comes before every position in the index. */
const start: readonly Value[] = ['', 0, 0, '', ''];

/** Returns the SQL for the queue. After an ANALYZE, SQLite would read the table instead, and it contains every call ever placed. */
const queueSql = ({ kind }: Database) => (kind === 'sqlite' ? 'calls INDEXED BY calls_due' : 'calls');

/**
 * Selects keys by their IDs, all keys of one creator (revoked or not), or all revoked keys whose queued calls still have to be cancelled.
 */
export type KeysWithCalls = { ids: readonly string[] } | { creatorId: string } | 'marked';

/** Builds the SQL condition that a call belongs to one of these keys. If there may be a million keys, it looks up each row's key. */
function isOfKeys(keys: KeysWithCalls): { sql: string; bindings: readonly string[] } {
  const placedBy = (table: string) => `SELECT 1 FROM ${table} k WHERE k.id = calls.api_key_id`;
  if (keys === 'marked') return { sql: `EXISTS (${placedBy('revoked_api_keys')} AND k.cancelling_since IS NOT NULL)`, bindings: [] };
  if ('ids' in keys) return { sql: `api_key_id IN (${keys.ids.map(() => '?')})`, bindings: keys.ids };
  const placedByUser = ['api_keys', 'revoked_api_keys'].map((table) => `EXISTS (${placedBy(table)} AND k.creator_id = ?)`);
  return { sql: `(${placedByUser.join(' OR ')})`, bindings: [keys.creatorId, keys.creatorId] };
}

/** Counts the calls that can be cancelled, for each of these keys that has any. */
export async function countQueued(database: Database, keyIds: readonly string[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const ids of inChunks(keyIds)) {
    const rows = await inEachShard(database, (shard) =>
      shard.query<{ api_key_id: string; calls: number }>(
        `SELECT api_key_id, count(*) AS calls FROM ${queueSql(database)}
       WHERE due_at IS NOT NULL AND api_key_id IN (${ids.map(() => '?')}) AND ${isUndialed} GROUP BY api_key_id`,
        ids,
      ),
    );
    for (const row of rows.flat()) counts.set(row.api_key_id, (counts.get(row.api_key_id) ?? 0) + row.calls);
  }
  return counts;
}

/**
 * Returns which of these keys have calls that a dialer is handing off. If the provider doesn't accept a call, the call can still be
 * cancelled.
 */
export async function keysHandingOff(database: Database, keys: KeysWithCalls, now: Millis): Promise<Set<string>> {
  const { sql, bindings } = isOfKeys(keys);
  const rows = await inEachShard(database, (shard) =>
    shard.query<{ api_key_id: string }>(
      `SELECT DISTINCT api_key_id FROM ${queueSql(database)}
     WHERE due_at IS NOT NULL AND due_at > ? AND ${sql} AND ${isAt('open')}`,
      [now, ...bindings],
    ),
  );
  return new Set(rows.flat().map((row) => row.api_key_id));
}

/** The number of calls per statement. One statement for 300,000 calls would lock SQLite for seconds, and exceed PostgreSQL's time limit. */
const cancelBatchSize = 1_000;
/**
 * In ms. A process that waits for SQLite's lock polls it. Without pauses between transactions, that process might not get the lock until it
 * times out.
 */
const pause = 5;

/**
 * Cancels in short transactions, so that others can write in between.
 *
 * @param size calls in one transaction
 * @returns the number of cancelled calls
 */
export function cancelQueued(
  database: Database,
  keys: KeysWithCalls,
  at: Millis,
  signal?: AbortSignal,
  size = cancelBatchSize,
): Promise<number> {
  return sumOfShards(database, (shard) => cancelInShard(shard, keys, at, signal, size));
}

async function cancelInShard(
  database: Database,
  keys: KeysWithCalls,
  at: Millis,
  signal: AbortSignal | undefined,
  size: number,
): Promise<number> {
  let cancelled = 0;
  // Handle locked calls last, because waiting for them while holding a thousand other locks would cause deadlocks. SQLite doesn't lock
  // calls.
  for (const locked of database.kind === 'sqlite' ? (['skip'] as const) : (['skip', 'wait'] as const)) {
    for (let count: number; ; cancelled += count) {
      count = await cancelOnce(database, keys, { at, locked, size }, signal);
      // Repeat until nothing is left, because calls may have moved to a part of the queue that was already read.
      if (count === 0) break;
    }
  }
  return cancelled;
}

type Options = { at: Millis; locked: 'skip' | 'wait'; size: number };

/** Reads the queue once, from start to end. @returns the number of cancelled calls */
async function cancelOnce(database: Database, keys: KeysWithCalls, options: Options, signal: AbortSignal | undefined): Promise<number> {
  let cancelled = 0;
  for (let after = start; ; ) {
    signal?.throwIfAborted();
    const calls = await findQueued(database, keys, after, options.size);
    const last = calls.at(-1);
    if (!last) return cancelled;
    cancelled += await cancelFound(database, calls, options);
    after = position.map((column) => last[column]);
    await setTimeout(pause);
  }
}

function findQueued(database: Database, keys: KeysWithCalls, after: readonly Value[], limit: number): Promise<Found[]> {
  const { sql, bindings } = isOfKeys(keys);
  return database.query<Found>(
    `SELECT ${[...position, 'campaign_id']} FROM ${queueSql(database)}
     WHERE due_at IS NOT NULL AND (${position}) > (?, ?, ?, ?, ?) AND ${sql} AND ${isUndialed}
     ORDER BY ${position} LIMIT ?`,
    [...after, ...bindings, limit],
  );
}

type WalkedRow = Found & { flag: Value | boolean };

/**
 * Reads the queue once, from start to end, in pages. Changes between two pages don't make it read anything twice or skip anything.
 *
 * @param options.flag SQL that says whether a call matches. It's selected as a column and not used as a condition, so that every page takes
 * the same time
 * @param options.accountId for the queue of one account
 * @param options.size calls on a page
 */
export async function* walkQueue(
  database: Database,
  options: { flag: string; accountId?: string; size: number; signal: AbortSignal | undefined },
): AsyncGenerator<WalkedRow[]> {
  const { flag, accountId, size } = options;
  const ofAccount = accountId === undefined ? '' : 'AND account_id = ?';
  for (let after = accountId === undefined ? start : [accountId, ...start.slice(1)]; ; ) {
    options.signal?.throwIfAborted();
    const rows = await database.query<WalkedRow>(
      `SELECT ${[...position, 'campaign_id']}, CASE WHEN ${flag} THEN 1 ELSE 0 END AS flag FROM ${queueSql(database)}
       WHERE due_at IS NOT NULL ${ofAccount} AND (${position}) > (?, ?, ?, ?, ?) ORDER BY ${position} LIMIT ?`,
      [...(accountId === undefined ? [] : [accountId]), ...after, size],
    );
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    after = position.map((column) => last[column]);
    await setTimeout(pause);
  }
}

/** Cancels the found calls that can still be cancelled. */
export async function cancelFound(
  database: Database,
  found: readonly Pick<Found, 'campaign_id' | 'contact_id'>[],
  { at, locked }: Pick<Options, 'at' | 'locked'>,
  transaction?: Knex.Transaction,
): Promise<number> {
  const skip = locked === 'skip' ? 'SKIP LOCKED' : '';
  const cancel = database.prepare(readSql(import.meta.url, 'cancel-queued', database.kind, { skip }), 'write');
  const keys = found.map(({ campaign_id, contact_id }) => [campaign_id, contact_id, at]);
  return (await cancel(keys, undefined, transaction)).changed;
}
