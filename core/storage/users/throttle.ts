import type { Knex } from 'knex';
import { clockSkew, deadlines } from '../../domain/deadlines.ts';
import { instant, type Millis } from '../../domain/instant.ts';
import type { ThrottleCounter, ThrottleStore } from '../../domain/ports.ts';
import { maxWindow } from '../../domain/sign-in/throttle.ts';
import { batched } from '../engine/batch.ts';
import type { Lane, Lanes, Value } from '../engine/database.ts';
import { isSingleRowError } from '../engine/errors.ts';

/** The maximum number of counters (about 20 MB). It's more than honest users need, but limits how much a flood from many addresses can store. */
export const maxThrottleCounters = 100_000;
/** Sweeps the counters after this many attempts, too, because in a flood, the hourly sweep would come too late. */
const sweepAfterTakes = 1_000;

const skew = clockSkew.toMillis();
/**
 * SQL: whether a counter is full. If a counter expires later than its window and the clock skew between cores allow, the clock that set it
 * was ahead. Such a counter is treated as expired, because otherwise it would block attempts until the correct time catches up.
 */
const isFull = `kept.attempts >= asked.max AND kept.expires_at > asked.now AND kept.expires_at <= asked.until + ${skew}`;
const isLive = `kept.expires_at > (SELECT max(now) FROM asked) AND kept.expires_at <= excluded.expires_at + ${skew}`;

/** Stores throttle counters. They're in the database, so that they apply to all processes and survive restarts. */
export function throttleStore({ 'sign-in': database }: Lanes): ThrottleStore {
  const { write } = database;
  const look = database.prepare(
    `SELECT asked.n, max(kept.expires_at) AS until FROM sign_in_attempts AS kept
     JOIN (${asked('CAST(e.value->>4 AS bigint) AS n')}) AS asked ON asked.key = kept.key WHERE ${isFull} GROUP BY asked.n`,
    'read',
  );
  // Attempts in a flood share a statement. With separate statements, attempts whose turn had come had to wait for a connection, and got a
  // 503.
  const blockedUntil = batched<{ counters: readonly ThrottleCounter[]; now: Millis; deadline: number }, { until: Millis | null }>({
    async run(looks) {
      const waits = await look(looks.flatMap(({ counters, now }, n) => toRows(counters, now).map((row) => [...row, n])));
      const ends = new Map(waits.rows.map((row) => [row['n'], row['until']]));
      return looks.map((_, n) => {
        const until = ends.get(n);
        return { until: typeof until === 'number' ? instant(until) : null };
      });
    },
    maxInFlight: 1,
    getShare: ({ counters: [first] }) => first?.key ?? '',
    isSingleRowError,
    observe: () => undefined,
  });
  // Use one statement, so that concurrent attempts are counted one by one, and no counter is increased if one of them is full.
  const count = database.prepare(
    `WITH asked AS (${asked()})
      INSERT INTO sign_in_attempts AS kept (key, attempts, expires_at) SELECT key, 1, until FROM asked
      WHERE NOT EXISTS (SELECT 1 FROM asked JOIN sign_in_attempts AS kept ON kept.key = asked.key WHERE ${isFull})
      ON CONFLICT (key) DO UPDATE SET
        attempts = CASE WHEN ${isLive} THEN kept.attempts + 1 ELSE 1 END,
        expires_at = CASE WHEN ${isLive} THEN kept.expires_at ELSE excluded.expires_at END
      RETURNING key, attempts`,
    'write',
  );
  let takes = 0;

  const store: ThrottleStore = {
    async blockedUntil(counters, now) {
      return (await blockedUntil({ counters, now, deadline: performance.now() + deadlines.answer })).until;
    },

    async take(counters, now) {
      const counted = await count(toRows(counters, now));
      if (++takes % sweepAfterTakes === 0) await store.sweep(now);
      const attempts = new Map(counted.rows.map((row) => [row['key'], Number(row['attempts'])]));
      if (counters.every(({ key, max }) => (attempts.get(key) ?? Number.POSITIVE_INFINITY) <= max)) return true;
      // On PostgreSQL, the statement sees the counters as they were when it started, so concurrent attempts may have exceeded a limit
      // together. Undo this one.
      for (const { key } of counters) if (attempts.has(key)) await store.giveBack(key);
      return false;
    },

    async giveBack(key) {
      await write('sign_in_attempts').where({ key }).where('attempts', '>', 0).decrement('attempts', 1);
    },

    async reset(key, now) {
      return (await write('sign_in_attempts').where({ key }).where('expires_at', '>', now).delete()) > 0;
    },

    async sweep(now) {
      const over = write('sign_in_attempts')
        .where('expires_at', '<=', now)
        .orWhere('expires_at', '>', now + maxWindow + skew);
      await deleteFound(database, over);
      // Keep the counters with the most attempts, because a flood of made-up addresses leaves counters with one attempt each, and a counter
      // that blocks has more.
      await deleteFound(
        database,
        write('sign_in_attempts').orderBy('attempts', 'desc').orderBy('expires_at', 'desc').offset(maxThrottleCounters),
      );
    },
  };
  return store;
}

/** SQL: the counters of the rows from {@link toRows}. */
function asked(...more: string[]): string {
  const numbers = ['max', 'now', 'until'].map((name, n) => `CAST(e.value->>${n + 1} AS bigint) AS ${name}`);
  return `SELECT ${['e.value->>0 AS key', ...numbers, ...more].join(', ')} FROM {{rows}}`;
}

function toRows(counters: readonly ThrottleCounter[], now: Millis): Value[][] {
  return counters.map(({ key, max, window }) => [key, max, now, now + window]);
}

/** Deletes counters, and skips those that an attempt has locked, because waiting for them could cause a deadlock. */
async function deleteFound({ kind, write }: Lane, outdated: Knex.QueryBuilder): Promise<void> {
  const keys = outdated.select('key');
  await write('sign_in_attempts')
    .whereIn('key', kind === 'postgres' ? keys.forUpdate().skipLocked() : keys)
    .delete();
}
