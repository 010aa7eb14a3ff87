import type { RetentionStore } from '../domain/retention.ts';
import type { Database } from './database.ts';

export function retentionStore({ read, write }: Database): RetentionStore {
  const erasable = (from: typeof read, endedBefore: number) =>
    from('calls').whereNotNull('ended_at').whereNotNull('phone').where('ended_at', '<', endedBefore);
  return {
    async countErasable(endedBefore) {
      const counted = await erasable(read, endedBefore.toMillis()).count({ calls: '*' }).first<{ calls: number | string }>();
      return Number(counted.calls);
    },

    async erase(endedBefore, limit) {
      const some = erasable(write, endedBefore.toMillis()).select('campaign_id', 'contact_id').limit(limit);
      return write('calls')
        .whereIn(['campaign_id', 'contact_id'], some)
        .update({ phone: null, name: null, time_zone: null, variables: null });
    },
  };
}
