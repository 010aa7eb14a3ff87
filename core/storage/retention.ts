import type { RetentionStore } from '../domain/ports.ts';
import { callKey } from './calls.ts';
import { inShortTransactions } from './chunks.ts';
import type { Database } from './database.ts';

const erasedAtOnce = 500;
const forgottenAtOnce = 2_000;

const counts: readonly { table: 'api_key_usage' | 'call_counts'; key: readonly string[] }[] = [
  { table: 'api_key_usage', key: ['api_key_id', 'quarter_at'] },
  { table: 'call_counts', key: ['campaign_id', 'quarter_at', 'state'] },
];

export function retentionStore({ read, write }: Database): RetentionStore {
  const erasable = (from: typeof read, endedBefore: number) =>
    from('calls').whereNotNull('ended_at').whereNotNull('phone').where('ended_at', '<', endedBefore);
  return {
    async countErasable(endedBefore) {
      const counted = await erasable(read, endedBefore.toMillis()).count({ calls: '*' }).first<{ calls: number | string }>();
      return Number(counted.calls);
    },

    async erase(endedBefore, signal) {
      const eraseSome = (limit: number) => {
        const some = erasable(write, endedBefore.toMillis()).select(callKey).limit(limit);
        // The detail is free text of the provider, which may have names and numbers.
        return write('calls').whereIn(callKey, some).update({ phone: null, name: null, time_zone: null, variables: null, detail: null });
      };
      return inShortTransactions(eraseSome, erasedAtOnce, signal);
    },

    async forgetCounts(before, signal) {
      let forgotten = 0;
      for (const { table, key } of counts) {
        const forgetSome = (limit: number) => {
          const some = write(table).where('quarter_at', '<', before.toMillis()).select(key).limit(limit);
          return write(table).whereIn(key, some).delete();
        };
        forgotten += await inShortTransactions(forgetSome, forgottenAtOnce, signal);
      }
      return forgotten;
    },
  };
}
