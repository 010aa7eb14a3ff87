import { Problem } from '../domain/problem.ts';
import type { Database } from './database.ts';

/** A call as a batch has left it. */
export type WrittenCall = { campaignId: string; contactId: string; state: 'cancelled' | null };

/**
 * Reads one row of a batch back through another connection, before any of the batch is answered. SQLite holds commits back, and reports no
 * error, while another writing statement of the same connection is active: 50 of 50 acknowledged calls were lost so. PostgreSQL says
 * itself what it has committed, and needs none of this.
 *
 * @throws Problem `unavailable` where only the writer sees the row. Its connection is gone then.
 */
export function readBack(database: Database): ((written: WrittenCall | undefined) => Promise<void>) | undefined {
  if (database.kind === 'postgres') return undefined;
  const find = database.prepare(
    { campaign_id: 'text', contact_id: 'text', state: 'text' },
    (rows) => `SELECT 1 AS found FROM ${rows} CROSS JOIN calls
     WHERE calls.campaign_id = r.campaign_id AND calls.contact_id = r.contact_id AND calls.state = coalesce(r.state, calls.state)`,
    'read',
  );
  return async (written) => {
    if (!written) return;
    const found = await find([[written.campaignId, written.contactId, written.state]]);
    if (found.length > 0) return;
    const error = new Error('A write was not committed: nobody but the connection that made it sees it.');
    await database.discardWriter(error);
    throw new Problem('unavailable', 'The database did not keep what was written. Try again, under the same request id.', {
      cause: error,
      retryAfter: 2,
    });
  };
}
