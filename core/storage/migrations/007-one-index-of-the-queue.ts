import type { Knex } from 'knex';
import type { Dialect } from '../engine/database.ts';

/**
 * A placed call no longer adds to an index by key: the keys of a thousand callers lie on a thousand pages, each of which was written again
 * with each batch. The queue itself, which grows at its end, now names the key, and is read to find what a key has queued. Calls that are due
 * at the same instant stay in the order in which they came.
 */
export async function up(trx: Knex, _dialect: Dialect): Promise<void> {
  await trx.raw(`DROP INDEX calls_queued_by_api_key`);
  await trx.raw(`DROP INDEX calls_due`);
  await trx.raw(`CREATE INDEX calls_due ON calls (account_id, due_at, placed_at, api_key_id) WHERE due_at IS NOT NULL`).options(patient);
}

/** In ms: an index on millions of rows takes longer than any other statement may. */
const patient = { query_timeout: 3_600_000 };
