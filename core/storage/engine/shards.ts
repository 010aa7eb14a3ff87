import { hash } from 'node:crypto';
import type { Knex } from 'knex';
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

/**
 * Returns a statement as it runs in a shard: without the lines that end in `-- not in a shard`, and with those that begin with
 * `-- in a shard:`. A call must not depend on a node that it doesn't need, and Citus would need all nodes for a statement that changes two
 * tables.
 */
export function toShardSql(sql: string): string {
  return sql.replaceAll(/^.*-- not in a shard$\n/gm, '').replaceAll('-- in a shard: ', '');
}

/** Whether a statement also counts the calls that it ends. In a shard, it returns them, and `countSeparately` counts them. */
export function countsEnded(sql: string): boolean {
  return /^\), counted AS \(/m.test(sql);
}

/**
 * Counts the calls that a statement has ended, in the same transaction. A call with a late outcome was already counted as `unknown`, so that
 * count is taken back.
 */
export async function countSeparately(trx: Knex.Transaction, ended: readonly object[]): Promise<void> {
  if (ended.length === 0) return;
  await trx.raw(
    `WITH changed AS (
       SELECT campaign_id, placed_at - placed_at % 900000 AS quarter_at, state, late_outcome_at
       FROM jsonb_to_recordset(?::jsonb) AS c (campaign_id text, placed_at bigint, state text, late_outcome_at bigint)
     )
     INSERT INTO call_count_changes (campaign_id, quarter_at, state, calls)
     SELECT campaign_id, quarter_at, state, count(*) FROM changed GROUP BY 1, 2, 3
     UNION ALL SELECT campaign_id, quarter_at, 'unknown', -1 FROM changed WHERE late_outcome_at IS NOT NULL`,
    [JSON.stringify(ended)],
  );
}
