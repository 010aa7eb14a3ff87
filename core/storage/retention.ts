import type { RetentionStore } from '../domain/ports.ts';
import { callKey } from './calls.ts';
import { inShortTransactions } from './chunks.ts';
import type { Database } from './database.ts';

const erasedAtOnce = 500;

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
  };
}
