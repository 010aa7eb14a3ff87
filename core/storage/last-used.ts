import type { Digest } from '../domain/model.ts';
import type { Clock } from '../domain/ports.ts';
import { inChunks } from './chunks.ts';
import type { Database } from './database.ts';

/** In ms. A key's row is written at most this often, and with `sweepEvery` is less than a minute late: together they stay below 60,000. */
const writeEvery = 45_000;
const sweepEvery = 10_000;

export type LastUsed = {
  /** @param at epoch milliseconds */
  note(digest: Digest, at: number): void;
  /** Writes the rest, and stops. */
  close(): Promise<void>;
};

/** Collects when keys were last used, and writes it in the background, where a failure fails no request. */
export function lastUsedOf(database: Database, clock: Clock, onError: (error: unknown) => void): LastUsed {
  const unwritten = new Map<Digest, number>();
  const writtenAt = new Map<Digest, number>();
  // Updates only: a revoked key must not return. Only forward, since another core may have written a later use.
  const statement = database.prepare(
    { digest: 'text', at: 'bigint' },
    (rows) => `UPDATE api_keys SET last_used_at = r.at FROM ${rows}
     WHERE api_keys.digest = r.digest AND (api_keys.last_used_at IS NULL OR api_keys.last_used_at < r.at)`,
    'write',
  );

  async function write(due: [Digest, number][]): Promise<void> {
    const now = clock.millis();
    // In the same order in every process: two cores that write the same keys then wait for each other instead of deadlocking.
    due.sort(([one], [other]) => (one < other ? -1 : 1));
    for (const rows of inChunks(due)) {
      await statement(rows);
      for (const [digest, at] of rows) {
        writtenAt.set(digest, now);
        if (unwritten.get(digest) === at) unwritten.delete(digest);
      }
    }
  }

  async function sweep(): Promise<void> {
    const now = clock.millis();
    for (const [digest, at] of writtenAt) if (now - at >= writeEvery) writtenAt.delete(digest);
    await write([...unwritten].filter(([digest]) => !writtenAt.has(digest)));
  }

  let underWay = Promise.resolve();
  const timer = setInterval(() => {
    underWay = underWay.then(sweep).catch(onError);
  }, sweepEvery).unref();

  return {
    note(digest, at) {
      if (at > (unwritten.get(digest) ?? 0)) unwritten.set(digest, at);
    },
    async close() {
      clearInterval(timer);
      await underWay;
      await write([...unwritten]).catch(onError);
    },
  };
}
