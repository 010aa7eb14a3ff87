import type { Millis } from '../../domain/instant.ts';
import type { ClockStore } from '../../domain/ports.ts';
import { required } from './columns.ts';
import type { Lanes } from './database.ts';

/** SQL: the database server's time. Only PostgreSQL may be on another machine with its own clock. */
const serverAt = { sqlite: 'NULL', postgres: 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint' } as const;

export function clockStore({ background: { kind, query, write } }: Lanes): ClockStore {
  return {
    async read() {
      const [row] = await query<{ newest_at: Millis | null; server_at: Millis | null }>(
        `SELECT newest_at, ${serverAt[kind]} AS server_at FROM clock`,
      );
      const { newest_at, server_at } = required(row ?? null, 'the clock');
      return { newestAt: newest_at, serverAt: server_at };
    },

    async advance(now) {
      await write('clock')
        .where((behind) => behind.whereNull('newest_at').orWhere('newest_at', '<', now))
        .update({ newest_at: now });
    },

    async set(now) {
      await write('clock').update({ newest_at: now });
    },
  };
}
