import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { RetentionDays } from '../../domain/model.ts';
import type { RetentionStore } from '../../domain/ports.ts';
import { earliest, inCallLanes, sumOfCalls } from '../engine/call-lanes.ts';
import { getDialect, inShortTransactions, type Lane } from '../engine/database.ts';
import { emptyLog } from '../engine/sqlite/sqlite.ts';
import { selectUnlocked } from '../queue/queue.ts';

const eraseBatchSize = 500;
const forgetBatchSize = 2_000;

const counts = {
  ofKeys: { table: 'api_key_usage', key: ['api_key_id', 'quarter_at'] },
  ofCalls: { table: 'call_counts', key: ['campaign_id', 'quarter_at', 'state'] },
} as const;

/**
 * SQL: when a call's retention period began. A provider may report an outcome long after the call's end, or an end that's before the
 * hand-off, for example if it sends seconds instead of milliseconds. If only the end counted, the call's data would be erased within the
 * hour, and an opt-out reported later would have no number. The expression must match the index.
 */
const retainedSince = (on: Knex) =>
  `${getDialect(on) === 'postgres' ? 'greatest' : 'max'}(ended_at, coalesce(dialed_at, ended_at), coalesce(late_outcome_at, ended_at))`;

/** The detail is the provider's free text, which may contain names and numbers. */
export const erasedColumns = { phone: null, name: null, time_zone: null, variables: null, detail: null };

export function retentionStore(database: Lane): RetentionStore {
  const { read, write } = database;
  const erasable = (from: Knex, endedBefore: number) =>
    from('calls')
      .whereNotNull('ended_at')
      .whereNotNull('phone')
      .whereRaw(`${retainedSince(from)} < ?`, [endedBefore]);
  async function recordedDays(): Promise<RetentionDays | null> {
    const row = await read('recorded_retention').first();
    return row ? { contacts: row.contact_days, auditEvents: row.audit_event_days } : null;
  }
  return {
    recordedDays,

    async recordDays(days) {
      const before = await recordedDays();
      if (before?.contacts === days.contacts && before.auditEvents === days.auditEvents) return null;
      const row = { one: 1, contact_days: days.contacts, audit_event_days: days.auditEvents } as const;
      await write('recorded_retention').insert(row).onConflict('one').merge();
      return before;
    },

    async countErasable(endedBefore) {
      const counts = await inCallLanes(database, async ({ read }) => {
        const [counted, oldest] = await Promise.all([
          erasable(read, endedBefore).count({ calls: '*' }).first<{ calls: number | string }>(),
          erasable(read, Number.MAX_SAFE_INTEGER).first<{ since: Millis | null }>(read.raw(`min(${retainedSince(read)}) AS since`)),
        ]);
        return { calls: Number(counted.calls), oldest: oldest.since };
      });
      return { erasable: counts.reduce((sum, { calls }) => sum + calls, 0), oldestEndedAt: earliest(counts.map(({ oldest }) => oldest)) };
    },

    async erase(endedBefore, signal, onErased) {
      const eraseBatch = async (write: Knex, limit: number) => {
        // This locks the calls, so that a late outcome can no longer change them, and two cores don't count the same ones.
        const calls = await selectUnlocked(write, erasable(write, endedBefore), limit).update(erasedColumns);
        onErased?.(calls);
        return calls;
      };
      const erased = await sumOfCalls(database, ({ write }) =>
        inShortTransactions((limit) => eraseBatch(write, limit), eraseBatchSize, signal),
      );
      if (erased > 0) await emptyLog(database);
      return erased;
    },

    async forgetCounts(before, signal) {
      let forgotten = 0;
      const forget = (write: Knex, { table, key }: (typeof counts)[keyof typeof counts]) => {
        const forgetBatch = (limit: number) => {
          const batch = write(table).where('quarter_at', '<', before).select(key).limit(limit);
          return write(table).whereIn(key, batch).delete();
        };
        return inShortTransactions(forgetBatch, forgetBatchSize, signal);
      };
      forgotten += await forget(write, counts.ofKeys);
      forgotten += await sumOfCalls(database, ({ write }) => forget(write, counts.ofCalls));
      // Days in UTC can be used here: in any time zone, a day ends within 14 hours of the same day in UTC, and `before` is a month ago.
      const days = (limit: number) => {
        const batch = write('api_key_days')
          .where('day', '<', new Date(before).toISOString().slice(0, 10))
          .select('api_key_id', 'day')
          .limit(limit);
        return write('api_key_days').whereIn(['api_key_id', 'day'], batch).delete();
      };
      const addresses = (limit: number) => {
        const batch = write('api_key_addresses').where('used_at', '<', before).select('api_key_id', 'address').limit(limit);
        return write('api_key_addresses').whereIn(['api_key_id', 'address'], batch).delete();
      };
      for (const forgetBatch of [days, addresses]) forgotten += await inShortTransactions(forgetBatch, forgetBatchSize, signal);
      return forgotten;
    },
  };
}
