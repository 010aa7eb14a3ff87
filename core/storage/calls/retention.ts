import type { Knex } from 'knex';
import type { Millis } from '../../domain/instant.ts';
import type { RetentionDays, RetentionStore } from '../../domain/ports.ts';
import { earliest, inCallLanes, sumOfCalls } from '../engine/call-lanes.ts';
import { countRows, getDialect, inShortTransactions, type Lane } from '../engine/database.ts';
import { emptyLog } from '../engine/sqlite/sqlite.ts';
import { selectUnlocked } from '../queue/queue.ts';

const eraseBatchSize = 500;
const forgetBatchSize = 2_000;

/**
 * What charts no longer show after a while: each table's key, and the column that says how old a row is. Days in UTC can be compared: in any
 * time zone, a day ends within 14 hours of the same day in UTC, and what's deleted is a month old.
 */
const counts = {
  api_key_usage: { key: ['api_key_id', 'quarter_at'], age: 'quarter_at' },
  api_key_days: { key: ['api_key_id', 'day'], age: 'day' },
  api_key_addresses: { key: ['api_key_id', 'address'], age: 'used_at' },
  call_counts: { key: ['campaign_id', 'quarter_at', 'state'], age: 'quarter_at' },
} as const;

/**
 * SQL: when a call's retention period began. A provider may report an outcome long after the call's end, or an end that's before the
 * hand-off, for example if it sends seconds instead of milliseconds. If only the end counted, the call's data would be erased within the
 * hour, and an opt-out reported later would have no number. The expression must match the index.
 */
const retainedSince = (on: Knex) =>
  `${getDialect(on) === 'postgres' ? 'greatest' : 'max'}(ended_at, coalesce(dialed_at, ended_at), coalesce(late_outcome_at, ended_at))`;

/**
 * The detail is the provider's free text, which may contain names and numbers. The row and its request ID stay, so an old request ID never
 * places a second call.
 */
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
        const [calls, oldest] = await Promise.all([
          countRows(erasable(read, endedBefore)),
          erasable(read, Number.MAX_SAFE_INTEGER).first<{ since: Millis | null }>(read.raw(`min(${retainedSince(read)}) AS since`)),
        ]);
        return { calls, oldest: oldest.since };
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
      const forget = ({ write }: Lane, table: keyof typeof counts) => {
        const { key, age } = counts[table];
        const oldest = age === 'day' ? new Date(before).toISOString().slice(0, 10) : before;
        const forgetBatch = (limit: number): Promise<number> => {
          const batch = write.from(table).where(age, '<', oldest).select(key).limit(limit);
          return write.from(table).whereIn(key, batch).delete();
        };
        return inShortTransactions(forgetBatch, forgetBatchSize, signal);
      };
      let forgotten = await sumOfCalls(database, (lane) => forget(lane, 'call_counts'));
      for (const table of ['api_key_usage', 'api_key_days', 'api_key_addresses'] as const) forgotten += await forget(database, table);
      return forgotten;
    },
  };
}
