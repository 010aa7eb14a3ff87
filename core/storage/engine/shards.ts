import { hash } from 'node:crypto';
import type { Millis } from '../../domain/instant.ts';
import type { Lane } from './database.ts';

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

/** Returns the databases of all shards. Without shards, that's the database itself. */
export function shardsOf(database: Lane): readonly Lane[] {
  const shards = database.shards();
  return shards.length === 0 ? [database] : shards;
}

/** Returns the shard with a campaign's calls. */
export function shardOf(database: Lane, campaignId: string): Lane {
  const shards = database.shards();
  return shards.length === 0 ? database : (shards[shardNumber(campaignId, shards.length)] ?? database);
}

/** Returns a function that makes something for each shard the first time that it's needed. */
export function perShard<Made>(make: (shard: Lane) => Made): (shard: Lane) => Made {
  const made = new WeakMap<Lane, Made>();
  return (shard) => {
    const existing = made.get(shard);
    if (existing !== undefined) return existing;
    const created = make(shard);
    made.set(shard, created);
    return created;
  };
}

/**
 * Runs a step in each shard at the same time. Every shard has its own connection, so one that doesn't respond doesn't delay the others.
 *
 * @throws the first error, after all steps have ended
 */
export async function inEachShard<Result>(database: Lane, step: (shard: Lane) => Promise<Result>): Promise<Result[]> {
  const results = await Promise.allSettled(shardsOf(database).map(step));
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

export async function sumOfShards(database: Lane, count: (shard: Lane) => Promise<number>): Promise<number> {
  return (await inEachShard(database, count)).reduce((sum, each) => sum + each, 0);
}

/** Returns the earliest of several times; null if there's none. */
export function earliest(times: readonly (Millis | null)[]): Millis | null {
  return times.reduce((first, at) => (first === null || (at !== null && at < first) ? at : first), null);
}

/** Groups items by the shard with their campaign's calls. */
export function byShard<Item>(database: Lane, items: readonly Item[], campaignOf: (item: Item) => string): Map<Lane, Item[]> {
  return Map.groupBy(items, (item) => shardOf(database, campaignOf(item)));
}
