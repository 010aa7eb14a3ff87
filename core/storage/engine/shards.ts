import { hash } from 'node:crypto';

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
