import { hash } from 'node:crypto';
import type { Millis } from '../../domain/instant.ts';
import type { Lane, Value } from './database.ts';

/* Which lanes have calls: the store's own one or, if the calls are divided into shards, one for each shard. */

export function callLanes(database: Lane): readonly Lane[] {
  const shards = database.shards();
  return shards.length === 0 ? [database] : shards;
}

export function callLane(database: Lane, campaignId: string): Lane {
  const shards = database.shards();
  return shards.length === 0 ? database : (shards[shardNumber(campaignId, shards.length)] ?? database);
}

/** Finds the lane that has a call. If there's only one, doesn't look for the call. @returns null if none of them has it */
export async function findCallLane(database: Lane, has: (lane: Lane) => Promise<boolean>): Promise<Lane | null> {
  const [only, ...others] = callLanes(database);
  if (only && others.length === 0) return only;
  const isMissing = new Error("The lane doesn't have this call.");
  const lookups = callLanes(database).map(async (lane) => {
    if (!(await has(lane))) throw isMissing;
    return lane;
  });
  try {
    return await Promise.any(lookups);
  } catch (error) {
    const failure = error instanceof AggregateError && error.errors.find((each) => each !== isMissing);
    if (failure) throw failure;
    return null;
  }
}

export function groupByLane<Item>(database: Lane, items: readonly Item[], campaignOf: (item: Item) => string): Map<Lane, Item[]> {
  return Map.groupBy(items, (item) => callLane(database, campaignOf(item)));
}

/** Runs a step in each lane that has calls, at the same time. @throws the first error, after all steps have ended */
export async function inCallLanes<Result>(database: Lane, step: (lane: Lane) => Promise<Result>): Promise<Result[]> {
  const results = await Promise.allSettled(callLanes(database).map(step));
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

export async function sumOfCalls(database: Lane, count: (lane: Lane) => Promise<number>): Promise<number> {
  return (await inCallLanes(database, count)).reduce((sum, each) => sum + each, 0);
}

export async function queryCalls<Found extends object>(database: Lane, sql: string, bindings?: readonly Value[]): Promise<Found[]> {
  return (await inCallLanes(database, ({ query }) => query<Found>(sql, bindings))).flat();
}

/** @param from SQL: `calls`, and what follows it in a query */
export async function countCalls(database: Lane, from: string, bindings: readonly Value[]): Promise<number> {
  const rows = await queryCalls<{ calls: number | string }>(database, `SELECT count(*) AS calls FROM ${from}`, bindings);
  return rows.reduce((sum, { calls }) => sum + Number(calls), 0);
}

export function earliest(times: readonly (Millis | null)[]): Millis | null {
  return times.reduce((first, at) => (first === null || (at !== null && at < first) ? at : first), null);
}

/*
 * Shards: see core/docs/scaling.md.
 */

/** The tables of a shard. All others exist once. */
export const shardTables = ['calls', 'call_counts', 'call_count_changes'] as const;

export const maxShards = 256;

/** How the number of shards is recorded: like a migration. */
export function shardsName(count: number): string {
  return `shards-${count}`;
}

export function shardSchema(shard: number): string {
  return `callkey_shard_${shard}`;
}

/** Returns the number of a campaign's shard. The result must never change, because calls would then be looked up in the wrong shard. */
export function shardNumber(campaignId: string, shards: number): number {
  return hash('sha256', campaignId, 'buffer').readUInt32BE() % shards;
}

/** SQL: the same as {@link shardNumber}. */
export function shardNumberSql(campaignId: string, shards: number): string {
  return `('x' || left(encode(sha256(convert_to(${campaignId}, 'UTF8')), 'hex'), 8))::bit(32)::bigint % ${shards}`;
}
