import { Problem } from '../../domain/problem.ts';
import type { Database } from '../engine/database.ts';

/** A call that a batch has written. */
type WrittenCall = { campaignId: string; contactId: string; state: 'cancelled' | null };

/**
 * Reads one row of a batch through another connection before any request of the batch gets its response. SQLite doesn't commit while
 * another writing statement is active on the same connection, and doesn't report an error: in a test, 50 of 50 acknowledged calls were lost
 * that way. PostgreSQL reports its commits correctly, and doesn't need this.
 *
 * @throws Problem `unavailable` if the row is definitely not in the database. In that case, only the writing connection saw it, and that
 * connection has been closed
 */
export function readBack(database: Database): ((written: WrittenCall | undefined) => Promise<void>) | undefined {
  if (database.kind === 'postgres') return undefined;
  const find = database.prepare(
    { campaign_id: 'text', contact_id: 'text', state: 'text' },
    (rows) => `SELECT 1 AS found FROM ${rows} CROSS JOIN calls
     WHERE calls.campaign_id = r.campaign_id AND calls.contact_id = r.contact_id AND calls.state = coalesce(r.state, calls.state)`,
    'read back',
  );
  return async (written) => {
    if (!written) return;
    const row = [written.campaignId, written.contactId, written.state];
    if ((await find([row])).length > 0) return;
    const error = new Error("A write wasn't committed: only the connection that wrote it sees it.");
    await database.discardWriter(error);
    // Closing the connection may have committed the row after all. Whether it did is certain only once another connection has had the lock.
    await database.write.transaction(async () => undefined);
    if ((await find([row])).length > 0) return;
    throw new Problem('unavailable', 'The database lost the write. Try again with the same request ID.', {
      cause: error,
      retryAfter: 2,
    });
  };
}
